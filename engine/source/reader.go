// Package source reads text: it finds the files that a job names, deals them out
// to partitions (Plan), and reads the lines of a partition (Reader).
//
// # What is read
//
// A path is a file, a folder, which stands for all files in it and its folders,
// or a pattern (see files.Grants.Glob), which stands for all files that it
// matches and all in the folders that it matches, each once. In folders and
// patterns, names that begin with "_" or "." are left out, unless the pattern
// asks for them. The files of a path are taken in the order of their paths'
// bytes, and the paths in the order in which they were given, twice if they were
// given twice.
//
// Files whose names end in .gz and .zst are decompressed.
//
// # Partitions
//
// A partition aims at target = max(1, min(maxPartitionBytes,
// ceil(total/minPartitions))) bytes of files, total being the size of all of
// them as they are on disk and minPartitions 2 where none is asked for. Files
// are taken in order. One that can be cut is cut where the current partition
// reaches the target; a compressed one goes whole into the current partition. A
// partition that has reached the target is closed. Empty files leave no trace.
// There is at least one partition.
//
// The native evaluator of the SDK plans by the same rule, so that a job has the
// same partitions there.
//
// # Lines
//
// A line ends with "\n" or "\r\n", neither of which belongs to it, or with the
// file. A "\r" elsewhere is part of its line. A line belongs to the piece of the
// file in which its first byte lies, so whoever reads a piece skips the rest of
// a line that began before, and reads its own last line beyond the piece's end.
package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Memory is what a Reader draws its buffers from: an engine/memory.Task.
type Memory interface {
	// Alloc answers a buffer of n bytes with undefined content.
	Alloc(n int) ([]byte, error)
	// Free takes back a buffer of Alloc.
	Free([]byte)
	// Acquire draws n bytes that lie elsewhere.
	Acquire(n int64) error
	// Release returns n bytes that were acquired.
	Release(n int64)
}

const (
	// bufferSize is how much is read at once. Larger reads are not faster.
	bufferSize = 256 << 10
	// beyondSize is how much is read at once beyond a piece's end, to find the
	// end of its last line.
	beyondSize = 16 << 10
	// longest is the longest stretch of text that may be one record: with "\r\n".
	longest = abi.MaxRecord + 2
)

// Reader reads the lines of one partition. It belongs to one goroutine and must
// be closed.
type Reader struct {
	ctx    context.Context
	mem    Memory
	opener *files.Opener
	pieces []msg.Piece // not begun yet
	err    error       // what Next answers from now on
	// longest is the longest line with its end, in bytes.
	longest int

	// The piece that is being read.
	open bool
	path string
	text io.Reader // the file or what unpacks it
	// end is where the piece ends in the text. Lines that begin there or later
	// are another's.
	end int64
	pos int64 // of buf[r] in the text
	eof bool  // text has ended

	// What was read and not yet consumed is buf[r:w]; in buf[r:scanned] there is
	// no "\n".
	buf           []byte
	r, w, scanned int

	file    counted
	unpack  unpackers
	records int64
}

// Open returns a reader of the pieces of one partition, in their order. Its
// buffers come from mem. When ctx ends, Next answers its cause. Files are opened
// when it is their turn.
func Open(ctx context.Context, g *files.Grants, mem Memory, pieces []msg.Piece) *Reader {
	return &Reader{ctx: ctx, mem: mem, opener: g.Opener(), pieces: pieces, longest: longest}
}

// Bytes is how many bytes of files were read, as they are on disk. It is a
// little more than the pieces have, because lines do not end where pieces do.
func (r *Reader) Bytes() int64 { return r.file.total }

// Records is how many lines Next has answered.
func (r *Reader) Records() int64 { return r.records }

// Close frees what the reader holds. It may be called twice.
func (r *Reader) Close() error {
	r.finish()
	r.opener.Close()
	r.unpack.close(r.mem)
	r.free()
	if r.err == nil {
		r.err = errors.New("reading text: the reader is closed")
	}
	return nil
}

// Next fills buf with records, a uvarint length and that many bytes each, and
// returns their length together. At the end it answers io.EOF. If buf is too
// small for the next record alone, nothing is consumed and n > len(buf) is the
// size that it needs.
//
// Errors name the file: those of package files, a [DataError], a
// [ChangedError], a [LongLineError], one of the memory, or the context's cause.
// Records that were read before an error are answered first.
func (r *Reader) Next(buf []byte) (n int, err error) {
	for r.err == nil {
		if !r.open {
			if len(r.pieces) == 0 {
				r.err = io.EOF
				break
			}
			r.err = r.begin()
			continue
		}
		var full bool
		if n, full = r.lines(buf, n); full {
			return n, nil
		}
		// No whole line is left in the buffer.
		if r.pos >= r.end {
			r.finish()
			continue
		}
		if !r.eof {
			r.err = r.fill()
			continue
		}
		if r.r < r.w {
			// The last line of the file, without an end.
			line := r.buf[r.r:r.w]
			size := recordSize(len(line))
			if size > len(buf)-n {
				if n > 0 {
					return n, nil
				}
				return size, nil
			}
			n = putRecord(buf, n, line)
			r.records++
			r.pos += int64(len(line))
			r.r, r.scanned = r.w, r.w
		}
		if r.pos < r.end && r.end != math.MaxInt64 {
			r.err = &ChangedError{Path: r.path, Want: r.end, Have: r.pos}
			continue
		}
		r.finish()
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

// lines moves the whole lines in the buffer that belong to the piece to
// buf[n:]. full means that the next one found no place; the result is then what
// Next answers.
func (r *Reader) lines(buf []byte, n int) (_ int, full bool) {
	text := r.buf[:r.w]
	start, scanned, records := r.r, r.scanned, 0
	// Where in the buffer the piece ends, as far as it does there.
	last := start + int(min(r.end-r.pos, int64(r.w-start)))
	for start < last {
		i := bytes.IndexByte(text[scanned:], '\n')
		if i < 0 {
			scanned = len(text)
			break
		}
		scanned += i
		line := text[start:scanned]
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		if size := recordSize(len(line)); size > len(buf)-n {
			if full = true; n == 0 {
				n = size
			}
			break
		}
		n = putRecord(buf, n, line)
		records++
		scanned++
		start = scanned
	}
	r.pos += int64(start - r.r)
	r.r, r.scanned = start, scanned
	r.records += int64(records)
	return n, full
}

// recordSize is the size of a record of n bytes with its length before it.
func recordSize(n int) int { return (bits.Len64(uint64(n)|1)+6)/7 + n }

// putRecord writes a record to buf[n:], which has room for it, and returns where
// it ends.
func putRecord(buf []byte, n int, line []byte) int {
	if len(line) < 0x80 {
		buf[n] = byte(len(line))
		n++
	} else {
		n += binary.PutUvarint(buf[n:], uint64(len(line)))
	}
	return n + copy(buf[n:], line)
}

// begin opens the next piece and goes to the first line that is its own.
func (r *Reader) begin() error {
	p := r.pieces[0]
	r.pieces = r.pieces[1:]
	f, err := r.opener.Open(p.Path)
	if err != nil {
		return err
	}
	r.open, r.path, r.eof = true, p.Path, false
	r.r, r.w, r.scanned = 0, 0, 0
	r.file.open(f)
	if c := compressionOf(p.Path); c != plain {
		r.pos, r.end = 0, math.MaxInt64
		r.text, err = r.unpack.open(c, &r.file, r.mem)
		return r.explain(err)
	}
	r.pos, r.end, r.text = p.Offset, p.Offset+p.Length, &r.file
	if p.Offset == 0 {
		return nil
	}
	// The line in which the byte before the piece lies is another's. If that
	// byte is its end, the piece's first byte begins a line.
	r.pos--
	if _, err := f.Seek(r.pos, io.SeekStart); err != nil {
		return r.explain(err)
	}
	for {
		if err := r.fill(); err != nil {
			return err
		}
		i := bytes.IndexByte(r.buf[r.r:r.w], '\n')
		if i >= 0 {
			r.r += i + 1
			r.pos += int64(i + 1)
			r.scanned = r.r
			return nil
		}
		r.pos += int64(r.w - r.r)
		r.r, r.scanned = r.w, r.w
		if r.eof || r.pos >= r.end {
			return nil
		}
	}
}

// finish ends the piece.
func (r *Reader) finish() {
	r.open, r.text = false, nil
	r.file.close()
}

// fill reads more of the text behind what is in the buffer, or finds its end.
func (r *Reader) fill() error {
	if r.ctx.Err() != nil {
		return fmt.Errorf("reading %s: %w", r.path, context.Cause(r.ctx))
	}
	if err := r.room(); err != nil {
		return err
	}
	// No more than the piece has, or what the end of its last line may take.
	want := int64(len(r.buf) - r.w)
	if rest := r.end - r.pos - int64(r.w-r.r); rest > 0 {
		want = min(want, rest)
	} else {
		want = min(want, beyondSize)
	}
	n, err := r.text.Read(r.buf[r.w : r.w+int(want)])
	r.w += n
	if errors.Is(err, io.EOF) {
		r.eof = true
		return nil
	}
	if n > 0 {
		return nil // first what was read; an error comes again
	}
	return r.explain(err)
}

// room makes place in the buffer: it moves what is left to the front, and takes
// a larger buffer for a line that does not fit, or the usual one again after it.
func (r *Reader) room() error {
	left := r.w - r.r
	size := len(r.buf)
	switch {
	case size == 0:
		size = bufferSize
	case left == size:
		if left >= r.longest {
			return &LongLineError{Path: r.path, Offset: r.pos, Limit: r.longest - 2}
		}
		size = min(2*size, r.longest)
	case size > bufferSize && left < bufferSize/2:
		size = bufferSize
	}
	if size != len(r.buf) {
		buf, err := r.mem.Alloc(size)
		if err != nil {
			return fmt.Errorf("reading %s, at byte %d of the text: a buffer for a line of %d bytes or more: %w", r.path, r.pos, left, err)
		}
		copy(buf, r.buf[r.r:r.w])
		r.free()
		r.buf = buf
	} else if r.r > 0 && len(r.buf)-r.w < bufferSize/2 {
		copy(r.buf, r.buf[r.r:r.w])
	} else {
		return nil
	}
	r.scanned -= r.r
	r.r, r.w = 0, left
	return nil
}

func (r *Reader) free() {
	if r.buf != nil {
		r.mem.Free(r.buf)
		r.buf = nil
	}
}

// counted is a file that counts what is read of it.
type counted struct {
	file  *os.File
	at    int64 // read of this file
	total int64 // read of all files
}

func (c *counted) open(f *os.File) { c.file, c.at = f, 0 }

func (c *counted) close() {
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.file.Read(b)
	c.at += int64(n)
	c.total += int64(n)
	return n, err
}
