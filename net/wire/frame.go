package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/quern-project/quern/internal/units"
)

const (
	// headerSize is the length of a frame's length.
	headerSize = 4
	// firstRead is how much memory a frame is given before any of it has arrived.
	firstRead = 64 << 10
	// keptBuffer is the largest buffer that is kept for the next frame.
	keptBuffer = 1 << 20
)

// Limit bounds the size of a message.
type Limit struct {
	Bytes   int64  // less than 4 GiB
	Setting string // the setting that it comes from, which errors name
}

// TooLargeError is a message over the limit. A Writer has written nothing of
// it; a Reader has read no more than its length and can read nothing further.
type TooLargeError struct {
	Type  string // of the message; empty when it was read
	Size  int64  // bytes
	Limit Limit
}

func (e *TooLargeError) Error() string {
	what := "a message"
	if e.Type != "" {
		what = "a " + e.Type
	}
	return fmt.Sprintf("%s of %s (%d bytes) is over the limit of %s: move less in one message, or raise %s",
		what, units.Bytes(e.Size), e.Size, units.Bytes(e.Limit.Bytes), e.Limit.Setting)
}

// ErrEmptyFrame is a frame of length 0, which no Writer writes.
var ErrEmptyFrame = errors.New("a frame without a message: the peer does not speak this protocol")

// Writer writes frames. It must not be used by two goroutines at a time.
type Writer struct {
	w     io.Writer
	limit Limit
	buf   bytes.Buffer
}

// NewWriter returns a writer of frames whose messages are within the limit.
func NewWriter(w io.Writer, limit Limit) *Writer { return &Writer{w: w, limit: limit} }

// Write writes one message, in a single call of the underlying Write. Errors
// are a [TooLargeError], after which the Writer can go on, and those of the
// encoding and of the underlying Write.
func (w *Writer) Write(v any) error {
	w.buf.Reset()
	w.buf.WriteString("\x00\x00\x00\x00") // the header's place
	if err := encode(v, &w.buf); err != nil {
		return err
	}
	frame := w.buf.Bytes()
	if size := int64(len(frame) - headerSize); size > w.limit.Bytes {
		w.drop()
		return &TooLargeError{Type: typeName(v), Size: size, Limit: w.limit}
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-headerSize))
	_, err := w.w.Write(frame)
	w.drop()
	return err
}

// drop gives up a buffer that one large message has grown.
func (w *Writer) drop() {
	if w.buf.Cap() > keptBuffer {
		w.buf = bytes.Buffer{}
	}
}

// Reader reads frames. It must not be used by two goroutines at a time. It
// reads two times a frame or more, so the underlying reader should be buffered.
type Reader struct {
	r     io.Reader
	limit Limit
	buf   []byte
}

// NewReader returns a reader of frames whose messages are within the limit.
func NewReader(r io.Reader, limit Limit) *Reader { return &Reader{r: r, limit: limit} }

// Read reads one message into the struct that v points to, which should be
// zero. It answers io.EOF when the stream ends between two frames, and an error
// that wraps io.ErrUnexpectedEOF when it ends within one. After a [DecodeError]
// the next frame can be read; after any other error the stream is of no use.
func (r *Reader) Read(v any) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r.r, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("reading a %s: the stream ends within a frame's length: %w", typeName(v), err)
		}
		return err
	}
	size := int64(binary.BigEndian.Uint32(header[:]))
	switch {
	case size == 0:
		return ErrEmptyFrame
	case size > r.limit.Bytes:
		return &TooLargeError{Size: size, Limit: r.limit}
	}
	message, err := r.message(int(size))
	if err != nil {
		return fmt.Errorf("reading a %s of %d bytes: %w", typeName(v), size, err)
	}
	err = Unmarshal(message, v)
	if cap(r.buf) > keptBuffer {
		r.buf = nil
	}
	return err
}

// message reads size bytes into the buffer, which grows with what has arrived,
// so that a length alone takes no memory.
func (r *Reader) message(size int) ([]byte, error) {
	have := 0
	for have < size {
		next := min(size, max(firstRead, 2*have, cap(r.buf)))
		if cap(r.buf) < next {
			r.buf = append(make([]byte, 0, next), r.buf[:have]...)
		}
		r.buf = r.buf[:next]
		n, err := io.ReadFull(r.r, r.buf[have:])
		have += n
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("the stream ends after %d of them: %w", have, err)
		}
	}
	return r.buf[:size], nil
}
