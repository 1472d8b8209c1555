//go:build !wasip1

package quern

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/quern-project/quern/sdk/abi"
)

// lineReader reads the lines of a text partition.
type lineReader struct {
	pieces []textPiece // the first is being read once file is set
	file   *os.File
	reader *bufio.Reader
	gzip   *gzip.Reader // nil for a plain piece
	packed *countingReader
	// at is where the next line begins, end where the piece ends, in bytes of the
	// text.
	at, end int64
	long    []byte // a line longer than reader's buffer
}

// next answers a line without its "\n" or "\r\n", good until the next call, or
// io.EOF after the last.
func (l *lineReader) next() ([]byte, error) {
	for {
		if l.file == nil {
			if len(l.pieces) == 0 {
				return nil, io.EOF
			}
			if err := l.open(); err != nil {
				return nil, err
			}
		}
		if l.at < l.end {
			line, err := l.line()
			if err != nil {
				return nil, err
			}
			if line != nil {
				return trimEnd(line), nil
			}
		}
		if l.gzip == nil && l.at < l.end {
			return nil, fmt.Errorf("reading %s: it had %d bytes or more when it was dealt out and has %d now: "+
				"input must not change while a job reads it", l.pieces[0].path, l.end, l.at)
		}
		l.close()
		l.pieces = l.pieces[1:]
	}
}

// trimEnd takes a line's end off: "\n" or "\r\n". A "\r" elsewhere belongs to
// the line.
func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return bytes.TrimSuffix(line[:n-1], []byte{'\r'})
	}
	return line
}

// open begins the first piece, at the first line that is its own.
func (l *lineReader) open() error {
	p := l.pieces[0]
	f, err := os.Open(p.path)
	if err != nil {
		return readingError(p.path, err)
	}
	l.file = f
	if p.gzip {
		l.packed = &countingReader{r: f}
		if l.gzip, err = gzip.NewReader(bufio.NewReaderSize(l.packed, abi.BatchSize)); err != nil {
			return l.explain(err)
		}
		l.reset(l.gzip)
		l.at, l.end = 0, math.MaxInt64
		return nil
	}
	l.at, l.end = p.offset, p.offset+p.length
	// The line in which the byte before the piece lies is another's. If that
	// byte ends a line, this skips nothing else.
	skip := l.at > 0
	if skip {
		l.at--
	}
	if _, err := f.Seek(l.at, io.SeekStart); err != nil {
		return l.explain(err)
	}
	l.reset(f)
	if skip {
		_, err = l.line()
	}
	return err
}

func (l *lineReader) reset(r io.Reader) {
	if l.reader == nil {
		l.reader = bufio.NewReaderSize(r, abi.BatchSize)
	} else {
		l.reader.Reset(r)
	}
}

// line reads on to the end of the line and answers it with its end, nil at the
// end of the file.
func (l *lineReader) line() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.reader.ReadSlice('\n')
		l.at += int64(len(part))
		if err == nil && len(l.long) == 0 {
			return part, nil
		}
		if len(l.long)+len(part) > abi.MaxRecord {
			return nil, fmt.Errorf("reading %s: the line that goes on after byte %d of the text is longer than %d bytes, "+
				"the most that a record may have", l.pieces[0].path, l.at, abi.MaxRecord)
		}
		l.long = append(l.long, part...)
		switch {
		case err == nil || errors.Is(err, io.EOF) && len(l.long) > 0:
			return l.long, nil
		case errors.Is(err, io.EOF):
			return nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, l.explain(err)
		}
	}
}

// explain names the file and, for a compressed one, how far it could be read.
func (l *lineReader) explain(err error) error {
	path := l.pieces[0].path
	switch {
	case l.packed == nil:
		return readingError(path, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("reading %s: its gzip data ends early, at byte %d of the file: it is truncated", path, l.packed.n)
	}
	return fmt.Errorf("reading %s: bad gzip data at or before byte %d of the file: %w", path, l.packed.n, err)
}

func (l *lineReader) close() {
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.gzip, l.packed = nil, nil, nil
}

// countingReader counts the bytes that were read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// textPort reads lines as records of a uvarint length and the line.
type textPort struct {
	lines lineReader
	line  []byte // read, but found no place in the last batch
	held  bool
	batch []byte
}

func newTextPort(pieces []textPiece) *textPort {
	return &textPort{lines: lineReader{pieces: pieces}}
}

func (p *textPort) read(buf []byte) (int, error) {
	if len(p.batch) == 0 {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	if len(p.batch) > len(buf) {
		return len(p.batch), nil
	}
	n := copy(buf, p.batch)
	p.batch = p.batch[:0]
	return n, nil
}

// fill makes the next batch, empty at the end.
func (p *textPort) fill() error {
	for {
		if !p.held {
			line, err := p.lines.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			p.line, p.held = line, true
		}
		if n := len(p.batch); n > 0 && n+binary.MaxVarintLen32+len(p.line) > abi.BatchSize {
			return nil
		}
		p.batch = binary.AppendUvarint(p.batch, uint64(len(p.line)))
		p.batch = append(p.batch, p.line...)
		p.held = false
	}
}

func (p *textPort) close() error { p.lines.close(); return nil }
func (p *textPort) abandon()     { p.lines.close() }
