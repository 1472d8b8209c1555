package quern

import (
	"strconv"

	"github.com/quern-project/quern/sdk/abi"
)

// cursor reads the records of a port, batch by batch.
type cursor struct {
	port  int64
	what  string
	keep  bool   // records may outlive their batch: each batch gets memory of its own
	buf   []byte // the batch
	pos   int    // of the next record
	guess int    // size of the next batch's buffer

	key, value []byte // of the record that next has found
}

// firstGuess is small because most tasks of a small job read little, and their
// time is a few microseconds. Later buffers are larger.
const firstGuess = 1 << 10

// openCursor opens a port for reading.
func openCursor(kind abi.PortKind, id uint32, partition int, keep bool) *cursor {
	c := &cursor{keep: keep, guess: firstGuess, what: "a shuffle"}
	if kind == abi.PortText {
		c.what = "a text"
	}
	c.port = check(hostPortOpen(kind, id, partition), "opening", c.what)
	return c
}

// fill reads the next batch; false at the end.
func (c *cursor) fill() bool {
	if c.port < 0 {
		return false
	}
	buf := c.buf[:cap(c.buf)]
	if c.keep || len(buf) < c.guess {
		buf = make([]byte, c.guess)
	}
	n := check(hostPortRead(c.port, buf), "reading", c.what)
	if n > int64(len(buf)) {
		c.guess = abi.BatchSize
		buf = make([]byte, n)
		if n != check(hostPortRead(c.port, buf), "reading", c.what) {
			fail(abi.ErrFailed, "reading "+c.what+": the engine changed its mind about a batch's length")
		}
	}
	c.buf, c.pos = buf[:n], 0
	if n == 0 {
		c.close()
	}
	c.guess = min(4*c.guess, abi.BatchSize)
	return n > 0
}

// next moves to the next record of a shuffle.
func (c *cursor) next() bool {
	if c.pos >= len(c.buf) && !c.fill() {
		c.key, c.value = nil, nil
		return false
	}
	var klen, vlen uint64
	if b := c.buf[c.pos:]; len(b) >= 2 && b[0]|b[1] < 0x80 {
		klen, vlen = uint64(b[0]), uint64(b[1])
		c.pos += 2
	} else {
		klen, vlen = c.uvarint(), c.uvarint()
	}
	if rest := uint64(len(c.buf) - c.pos); klen > rest || vlen > rest-klen {
		c.corrupt()
	}
	middle := c.pos + int(klen)
	end := middle + int(vlen)
	c.key, c.value = c.buf[c.pos:middle:middle], c.buf[middle:end:end]
	c.pos = end
	return true
}

// line moves to the next record of a text: its bytes are c.value.
func (c *cursor) line() bool {
	if c.pos >= len(c.buf) && !c.fill() {
		return false
	}
	n := uint64(c.buf[c.pos])
	if c.pos++; n >= 0x80 {
		c.pos--
		n = c.uvarint()
	}
	if n > uint64(len(c.buf)-c.pos) {
		c.corrupt()
	}
	end := c.pos + int(n)
	c.value = c.buf[c.pos:end:end]
	c.pos = end
	return true
}

// uvarint reads a length of any size. Callers read short ones, which most are,
// themselves.
func (c *cursor) uvarint() uint64 {
	v, n := uvarint(c.buf[c.pos:])
	if n <= 0 {
		c.corrupt()
	}
	c.pos += n
	return v
}

func (c *cursor) corrupt() {
	fail(abi.ErrFailed, c.what+": a batch is damaged at byte "+strconv.Itoa(c.pos))
}

// close may be called before the end, and twice.
func (c *cursor) close() {
	if c.port >= 0 {
		check(hostPortClose(c.port), "closing", c.what)
		c.port = -1
	}
}

// portWriter collects records and writes them to a port in batches.
type portWriter struct {
	encoder
	port   int64
	what   string
	write  func(batch []byte)
	head   int // bytes at the start of each batch that belong to prefix
	prefix func(batch []byte)
}

func openWriter(kind abi.PortKind, id uint32, partition int, what string) *portWriter {
	w := &portWriter{what: what}
	w.port = check(hostPortOpen(kind, id, partition), "opening", what)
	w.write = func(batch []byte) { check(hostPortWrite(w.port, batch), "writing", what) }
	return w
}

// full is called between records.
func (w *portWriter) full() bool { return len(w.b) >= abi.BatchSize }

// flush writes what has been collected.
func (w *portWriter) flush() {
	if len(w.b) > w.head {
		if w.prefix != nil {
			w.prefix(w.b)
		}
		w.write(w.b)
		w.b = w.b[:w.head]
	}
}

// close completes the port. After a failure it is not called: the host then
// throws away what was written.
func (w *portWriter) close() {
	w.flush()
	check(hostPortClose(w.port), "closing", w.what)
}
