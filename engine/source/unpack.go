package source

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// packedBuffer is how much of a compressed file is read at once.
	packedBuffer = 128 << 10
	// gzipMemory is what unpacking gzip takes, in bytes: window and tables.
	gzipMemory = 64 << 10
	// maxWindow is the largest window of zstd data that is unpacked, in bytes;
	// that of zstd --long=27, the most that the zstd tool accepts unasked.
	maxWindow = 128 << 20
	// zstdMemory is what unpacking zstd takes besides two windows, in bytes.
	zstdMemory = 1 << 20
	// gzipMagic is how gzip data begins.
	gzipMagic = "\x1f\x8b"
)

// unpackers are the decompressors of one Reader. They are made when they are
// first needed and used again for the next file.
type unpackers struct {
	packed   *bufio.Reader // between the file and the decompressor
	gzip     *gzip.Reader
	zstd     *zstd.Decoder
	acquired int64 // from the memory
}

// open returns the text of a compressed file.
func (u *unpackers) open(c compression, f *counted, mem Memory) (io.Reader, error) {
	if u.packed == nil {
		if err := u.acquire(packedBuffer, mem); err != nil {
			return nil, err
		}
		u.packed = bufio.NewReaderSize(f, packedBuffer)
	} else {
		u.packed.Reset(f)
	}
	if c == gzipped {
		return u.openGzip(mem)
	}
	return u.openZstd(mem)
}

func (u *unpackers) openGzip(mem Memory) (io.Reader, error) {
	if u.gzip == nil {
		if err := u.acquire(gzipMemory, mem); err != nil {
			return nil, err
		}
		u.gzip = new(gzip.Reader)
	}
	magic, _ := u.packed.Peek(len(gzipMagic))
	if err := u.gzip.Reset(u.packed); err != nil {
		switch {
		case !strings.HasPrefix(gzipMagic, string(magic)): // shorter than a header, and not the beginning of one
			err = gzip.ErrHeader
		case errors.Is(err, io.EOF): // a file that was not empty when it was dealt out
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return u.gzip, nil
}

func (u *unpackers) openZstd(mem Memory) (io.Reader, error) {
	if u.zstd == nil {
		var err error
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("preparing zstd: %w", err)
		}
	}
	// The window of the first frame is what the decoder takes; frames of one file
	// are mostly written by one tool with one window.
	window := int64(0)
	var header zstd.Header
	if start, _ := u.packed.Peek(zstd.HeaderMaxSize); header.Decode(start) == nil {
		window = int64(min(header.WindowSize, maxWindow))
	}
	if more := zstdMemory + 2*window - u.acquired; more > 0 {
		if err := u.acquire(more, mem); err != nil {
			return nil, err
		}
	}
	return u.zstd, u.zstd.Reset(u.packed)
}

func (u *unpackers) acquire(n int64, mem Memory) error {
	if err := mem.Acquire(n); err != nil {
		return &memoryError{err}
	}
	u.acquired += n
	return nil
}

func (u *unpackers) close(mem Memory) {
	if u.zstd != nil {
		u.zstd.Close()
	}
	mem.Release(u.acquired)
	*u = unpackers{}
}

// offset is how many bytes of the file the decompressor has taken.
func (u *unpackers) offset(f *counted) int64 {
	if u.packed == nil {
		return f.at
	}
	return f.at - int64(u.packed.Buffered())
}

// failed says whether an error is about the data, and not about the file or the
// memory.
func (u *unpackers) failed(err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	_, memory := errors.AsType[*memoryError](err)
	return !file && !memory
}

// memoryError tells the memory's refusal from the data's faults.
type memoryError struct{ error }

func (e *memoryError) Unwrap() error { return e.error }
