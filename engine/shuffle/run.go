package shuffle

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/xxh3"

	"github.com/quern-project/quern/engine/memory"
)

// run is a sequence of blocks that can be opened: a segment of a map output, or
// a spilled run, whose records are in order.
type run struct {
	segment
	file *scratch   // of a spilled run
	out  *mapOutput // of a segment
	// opened is the file of out, if it was left open for whoever opens the run.
	opened *os.File
}

// cost is the memory that an open run draws.
func (r *run) cost() int64 {
	return int64(memory.RoundUp(r.bufferSize())) + int64(memory.RoundUp(min(r.maxRaw, maxCompressed)))
}

// bufferSize is how much of the file is held at once: a block at least, and all
// of a short run.
func (r *run) bufferSize() int {
	return int(min(r.length, int64(blockHeaderSize+max(r.maxRaw, minReadSize))))
}

// minReadSize makes reads of runs with small blocks worth their system call.
const minReadSize = 16 << 10

// whole says whether the run is read at once, so that its file need not stay open.
func (r *run) whole() bool { return int64(r.bufferSize()) == r.length }

// blockReader reads a run's blocks one after the other.
type blockReader struct {
	run    *run
	mem    *memory.Task
	drawn  int64
	decomp *decompressor

	file   *os.File // nil when there is nothing left to be read from it
	next   int64    // offset in the file of what is not yet in buf
	left   int64    // bytes of it
	buf    []byte
	lo, hi int // what of buf is not yet consumed
	raw    []byte

	block  int   // number of the block, from 0
	offset int64 // of the block in its file
	header blockHeader
	stored []byte // of the block, valid until the next one is loaded
	ended  bool   // there was no next one
}

// openRun draws the buffers and opens the file. The decompressor may be shared
// by all that one task opens.
func openRun(mem *memory.Task, d *decompressor, r *run) (*blockReader, error) {
	b := &blockReader{run: r, mem: mem, decomp: d, next: r.offset, left: r.length, block: -1, offset: r.offset}
	if err := mem.Acquire(r.cost()); err != nil {
		return nil, err
	}
	b.drawn = r.cost()
	var err error
	if b.buf, err = mem.Map(r.bufferSize()); err != nil {
		b.close()
		return nil, err
	}
	if r.file != nil {
		b.file = r.file.f
		return b, nil
	}
	if b.file, r.opened = r.opened, nil; b.file == nil {
		if b.file, err = os.Open(r.out.Path); err != nil {
			b.close()
			return nil, b.fail(err)
		}
	}
	if r.whole() {
		if err := b.fill(len(b.buf)); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, nil
}

// close gives everything back. It may be called twice.
func (b *blockReader) close() {
	b.closeFile()
	if b.buf != nil {
		b.mem.Unmap(b.buf)
	}
	if b.raw != nil {
		b.mem.Unmap(b.raw)
	}
	b.mem.Release(b.drawn)
	*b = blockReader{run: b.run, mem: b.mem}
}

func (b *blockReader) closeFile() {
	if b.file != nil && b.run.file == nil {
		b.file.Close()
	}
	b.file = nil
}

// fail reports what is wrong with the current block.
func (b *blockReader) fail(cause error) error {
	if b.run.out != nil {
		return b.run.out.fetchError(b.block, b.offset, cause)
	}
	return fmt.Errorf("%s: reading back %s: block %d at offset %d: %w", b.run.file.what, b.run.file.f.Name(), b.block, b.offset, cause)
}

// fill makes at least n bytes of buf unconsumed.
func (b *blockReader) fill(n int) error {
	if b.hi-b.lo >= n {
		return nil
	}
	if int64(n-(b.hi-b.lo)) > b.left || n > len(b.buf) {
		return b.fail(errors.New("the block goes on behind the end of its segment: the file is corrupted"))
	}
	b.hi = copy(b.buf, b.buf[b.lo:b.hi])
	b.lo = 0
	want := int(min(b.left, int64(len(b.buf)-b.hi)))
	got, err := b.file.ReadAt(b.buf[b.hi:b.hi+want], b.next)
	if got < want {
		if err == nil || errors.Is(err, io.EOF) {
			err = truncated(b.next + int64(got))
		}
		return b.fail(err)
	}
	b.hi += got
	b.next += int64(got)
	if b.left -= int64(got); b.left == 0 {
		b.closeFile()
	}
	return nil
}

// load goes to the next block and checks it; false at the end of the run.
func (b *blockReader) load() (bool, error) {
	if b.block >= 0 {
		b.offset += blockHeaderSize + int64(b.header.stored)
	}
	b.block++
	if b.left == 0 && b.lo == b.hi {
		b.ended = true
		return false, nil
	}
	if err := b.fill(blockHeaderSize); err != nil {
		return false, err
	}
	h, err := parseBlockHeader(b.buf[b.lo:])
	if err != nil {
		return false, b.fail(err)
	}
	if h.raw > b.run.maxRaw {
		return false, b.fail(fmt.Errorf("a block of %d bytes where none has more than %d: the file is corrupted", h.raw, b.run.maxRaw))
	}
	if b.run.out != nil && h.partition != b.run.out.reduce {
		return false, b.fail(fmt.Errorf("a block of partition %d: the file is corrupted", h.partition))
	}
	if err := b.fill(blockHeaderSize + h.stored); err != nil {
		return false, err
	}
	b.header = h
	b.stored = b.buf[b.lo+blockHeaderSize : b.lo+blockHeaderSize+h.stored]
	b.lo += blockHeaderSize + h.stored
	if xxh3.Hash(b.stored) != h.sum {
		return false, b.fail(errors.New("the block's checksum differs: the file is corrupted"))
	}
	return true, nil
}

// records answers the records of the loaded block, valid until the next load.
func (b *blockReader) records() ([]byte, error) {
	if b.header.codec == codecNone {
		return b.stored, nil
	}
	if b.raw == nil {
		var err error
		if b.raw, err = b.mem.Map(min(b.run.maxRaw, maxCompressed)); err != nil { // drawn by openRun
			return nil, err
		}
	}
	raw := b.raw[:b.header.raw]
	if err := b.decomp.decompress(b.header.codec, raw, b.stored); err != nil {
		return nil, b.fail(err)
	}
	return raw, nil
}

var errRecord = errors.New("a record is malformed: the file is corrupted")

// cursor goes through the records of one partition of a run. It is a value of a
// merge, laid out for comparing.
type cursor struct {
	prefix uint64 // of the key; the largest number at the end
	klen   int
	rec    record
	rest   []byte // the block from the current record on
	done   bool
	blocks *blockReader
	part   uint32
}

// start goes to the first record of the loaded block.
func (c *cursor) start() (err error) {
	c.part = c.blocks.header.partition
	if c.rest, err = c.blocks.records(); err != nil {
		return err
	}
	return c.look()
}

// current is the record, valid until the cursor moves.
func (c *cursor) current() []byte { return c.rest[:c.rec.total] }

func (c *cursor) key() []byte { return c.rest[c.rec.key : c.rec.key+c.rec.klen] }

// look parses the record that rest begins with.
func (c *cursor) look() error {
	c.rec = parseRecord(c.rest)
	if c.rec.total > len(c.rest) {
		return c.blocks.fail(errRecord)
	}
	c.klen = min(c.rec.klen, longKey)
	c.prefix = keyPrefix(c.rest, c.rec.key, c.rec.klen)
	return nil
}

// advance goes to the next record of the partition, or is done.
func (c *cursor) advance() error {
	c.rest = c.rest[c.rec.total:]
	if len(c.rest) > 0 {
		return c.look()
	}
	ok, err := c.blocks.load()
	if err != nil {
		return err
	}
	if !ok || c.blocks.header.partition != c.part {
		c.prefix, c.done = ^uint64(0), true
		return nil
	}
	return c.start()
}
