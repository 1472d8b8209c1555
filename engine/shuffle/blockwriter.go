package shuffle

import (
	"os"

	"github.com/zeebo/xxh3"

	"github.com/quern-project/quern/engine/memory"
)

// blockWriter writes records of ascending partitions to a file, as blocks.
type blockWriter struct {
	what string // for errors: whose output it is
	mem  *memory.Task
	comp compressor
	size int // of a block

	raw   []byte // records of the block that is being filled, rawN bytes
	rawN  int
	count uint32 // of those records
	out   []byte // what goes to the file next, outN bytes
	outN  int

	file   *os.File
	offset int64 // in the file, of out
	part   uint32
	seg    segment // what was written since begin
}

// segment is a sequence of blocks in a file.
type segment struct {
	offset  int64
	length  int64 // in bytes
	records int64
	maxRaw  int // length of the records of the largest block
}

// newBlockWriter draws the buffers. The file is given with open.
func newBlockWriter(c Config, what string) (*blockWriter, error) {
	cdc, err := codecOf(c.Compression)
	if err != nil {
		return nil, err
	}
	w := &blockWriter{what: what, mem: c.Memory, comp: compressor{codec: cdc}, size: c.block()}
	if err := w.mem.Acquire(cdc.memory()); err != nil {
		return nil, err
	}
	if w.raw, err = w.mem.Alloc(w.size); err == nil {
		w.out, err = w.mem.Alloc(w.outSize(w.size))
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// outSize is how much out must hold to take a block of n bytes after others.
func (w *blockWriter) outSize(n int) int { return blockHeaderSize + w.comp.bound(n) }

// writerCost is the memory that a blockWriter draws.
func writerCost(c Config) int64 {
	cdc, _ := codecOf(c.Compression)
	w := blockWriter{size: c.block()}
	return cdc.memory() + int64(memory.RoundUp(w.size)) + int64(memory.RoundUp(w.outSize(w.size)))
}

// open makes the following blocks go to file, from offset on.
func (w *blockWriter) open(file *os.File, offset int64) { w.file, w.offset = file, offset }

// begin starts a partition.
func (w *blockWriter) begin(partition uint32) {
	w.part = partition
	w.seg = segment{offset: w.position()}
}

// end completes a partition.
func (w *blockWriter) end() (segment, error) {
	err := w.block()
	return w.seg, err
}

// add appends a record.
func (w *blockWriter) add(rec []byte) error {
	if len(rec) > w.size-w.rawN {
		return w.addToNext(rec)
	}
	copy(w.raw[w.rawN:], rec)
	w.rawN += len(rec)
	w.count++
	return nil
}

// addToNext appends a record for which the current block has no room.
func (w *blockWriter) addToNext(rec []byte) error {
	if err := w.block(); err != nil {
		return err
	}
	if len(rec) > w.size {
		return w.emit(rec, 1)
	}
	w.rawN = copy(w.raw, rec)
	w.count = 1
	return nil
}

// block completes the current block, if there is anything in it.
func (w *blockWriter) block() error {
	if w.rawN == 0 {
		return nil
	}
	err := w.emit(w.raw[:w.rawN], w.count)
	w.rawN, w.count = 0, 0
	return err
}

// emit writes records as one block.
func (w *blockWriter) emit(records []byte, count uint32) error {
	if len(w.out)-w.outN < w.outSize(len(records)) {
		if err := w.flush(); err != nil {
			return err
		}
		w.enlarge(len(records))
	}
	h := blockHeader{partition: w.part, raw: len(records), stored: len(records), records: count}
	stored := records
	if len(records) <= maxCompressed && len(w.out)-w.outN >= w.outSize(len(records)) {
		dst := w.out[w.outN+blockHeaderSize:]
		n, err := w.comp.compress(dst[:w.comp.bound(len(records))], records)
		if err != nil {
			return err
		}
		if n > 0 {
			h.codec, h.stored, stored = w.comp.codec, n, dst[:n]
		}
	}
	h.sum = xxh3.Hash(stored)
	return w.write(h, stored)
}

// enlarge makes out large enough to compress a block of n bytes, when there is
// memory for it. When there is not, the block is stored as it is.
func (w *blockWriter) enlarge(n int) {
	if w.comp.codec == codecNone || n > maxCompressed || len(w.out) >= w.outSize(n) {
		return
	}
	b, err := w.mem.Alloc(w.outSize(n))
	if err != nil {
		return
	}
	w.mem.Free(w.out)
	w.out = b
}

// write appends a block whose stored bytes are given, and may lie in out where
// they belong.
func (w *blockWriter) write(h blockHeader, stored []byte) error {
	w.seg.length += blockHeaderSize + int64(len(stored))
	w.seg.records += int64(h.records)
	w.seg.maxRaw = max(w.seg.maxRaw, h.raw)
	if len(w.out)-w.outN < blockHeaderSize+len(stored) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	h.put(w.out[w.outN:])
	w.outN += blockHeaderSize
	if len(stored) > len(w.out)-w.outN {
		if err := w.flush(); err != nil {
			return err
		}
		return w.writeFile(stored)
	}
	w.outN += copy(w.out[w.outN:], stored)
	return nil
}

// append writes bytes that are no block, such as the index.
func (w *blockWriter) append(b []byte) error {
	if len(b) > len(w.out)-w.outN {
		if err := w.flush(); err != nil {
			return err
		}
		if len(b) > len(w.out) {
			return w.writeFile(b)
		}
	}
	w.outN += copy(w.out[w.outN:], b)
	return nil
}

// flush gives the file what is buffered.
func (w *blockWriter) flush() error {
	n := w.outN
	w.outN = 0
	return w.writeFile(w.out[:n])
}

func (w *blockWriter) writeFile(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := w.file.WriteAt(b, w.offset)
	w.offset += int64(n)
	if err != nil {
		return diskError(w.what, err)
	}
	return nil
}

// close frees the buffers. What was not flushed is lost. It may be called twice.
func (w *blockWriter) close() {
	if w.mem == nil {
		return
	}
	w.comp.close()
	w.mem.Free(w.raw)
	w.mem.Free(w.out)
	w.mem.Release(w.comp.codec.memory())
	w.raw, w.out, w.mem = nil, nil, nil
}

// position is the offset in the file of what comes next.
func (w *blockWriter) position() int64 { return w.offset + int64(w.outN) }
