package shuffle

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Writer takes the output of one map task attempt. It belongs to the task's
// goroutine and must be ended by Commit or Abort.
type Writer struct {
	config Config
	desc   abi.ShuffleDesc
	id     identity
	what   string // names the output in errors
	base   string // path of the data file
	bounds rangePartitioner

	arena  arena
	blocks *blockWriter // nil until there is a record
	runs   []*run       // spilled, in the order of arrival
	rounds rounds
	decomp decompressor
	busy   bool // the arena must not be touched by Spill
	closed bool
	err    error // the first one: the output is lost

	metrics  WriteMetrics
	inMemory int64 // bytes of the records in the arena
}

// NewWriter starts the output of a map partition by a task attempt. It takes
// memory with the first record only.
func NewWriter(c Config, d abi.ShuffleDesc, mapPartition int, task msg.TaskID) (*Writer, error) {
	if err := c.check(d); err != nil {
		return nil, err
	}
	w := &Writer{
		config: c,
		desc:   d,
		id:     identity{shuffle: msg.ShuffleID(d.ID), mapPart: mapPartition, task: task, partitions: d.Partitions},
		what:   fmt.Sprintf("shuffle %d, output of map %d", d.ID, mapPartition),
		base:   filepath.Join(c.Dir, fmt.Sprintf("shuffle_%d_%d_%d.data", d.ID, mapPartition, task)),
		arena:  arena{mem: c.Memory},
	}
	if d.Partitioner == abi.PartitionRange {
		if !ascending(d.Bounds) {
			return nil, fmt.Errorf("shuffle %d: the bounds of its partitions do not ascend", d.ID)
		}
		w.bounds = newRangePartitioner(d.Bounds)
	}
	w.rounds = rounds{what: w.what, config: c, decomp: &w.decomp, sorted: d.Sorted, create: w.newScratch}
	c.Memory.Register(w)
	return w, nil
}

func (w *Writer) newScratch() (*os.File, error) {
	name := fmt.Sprintf("%s.spill%d", w.base, len(w.rounds.files))
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// Metrics says what was done so far.
func (w *Writer) Metrics() WriteMetrics {
	m := w.metrics
	m.DiskSpilled += w.rounds.written
	return m
}

// Write takes a batch of whole records, each as uvarint key length, uvarint
// value length, key, value. It copies the batch. After an error, which may be
// that of a malformed batch, of memory or of the disk, the output is lost.
func (w *Writer) Write(batch []byte) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return fmt.Errorf("%s: written to after its end", w.what)
	}
	if len(batch) == 0 {
		return nil
	}
	return w.fail(w.write(batch))
}

// fail remembers the first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

func (w *Writer) write(batch []byte) error {
	n, err := countRecords(batch)
	if err != nil {
		return fmt.Errorf("%s: %w", w.what, err)
	}
	if w.blocks == nil {
		// Buffers for writing come first: spilling must not need new memory.
		if w.blocks, err = newBlockWriter(w.config, w.what); err != nil {
			return err
		}
		w.rounds.writer = w.blocks
	}
	if err := w.reserve(len(batch), n); err != nil {
		return err
	}
	address, stored := w.arena.put(batch)
	if err := w.enter(address, stored, len(batch)); err != nil {
		return err
	}
	w.metrics.Records += int64(n)
	w.metrics.Bytes += int64(len(batch))
	w.inMemory += int64(len(batch))
	return nil
}

// countRecords checks that a batch is whole records, and counts them.
func countRecords(batch []byte) (n int, err error) {
	for rest := batch; len(rest) > 0; n++ {
		r := parseRecord(rest)
		if r.total > len(rest) {
			return 0, fmt.Errorf("malformed batch: record %d, at byte %d of %d, is not whole or is longer than %d bytes",
				n, len(batch)-len(rest), len(batch), abi.MaxRecord)
		}
		rest = rest[r.total:]
	}
	return n, nil
}

// reserve makes room in the arena. Drawing memory may make this writer spill.
func (w *Writer) reserve(bytes, entries int) error {
	for frugal := false; ; {
		if w.arena.full(bytes, entries) {
			if err := w.spill(); err != nil {
				return err
			}
		}
		g := w.arena.grow(bytes, entries, frugal)
		if g == (growth{}) {
			return nil
		}
		cost, spills := w.arena.cost(g), w.metrics.Spills
		err := w.config.Memory.Acquire(cost)
		switch {
		case err != nil && refused(err) && !frugal:
			frugal = true
		case err != nil:
			return err
		case spills != w.metrics.Spills || g != w.arena.grow(bytes, entries, frugal):
			// There is room now, or another need than before.
			w.config.Memory.Release(cost)
		default:
			if err := w.arena.apply(g); err != nil {
				return err
			}
		}
	}
}

// enter indexes the records of a batch that lies in the arena at address, where
// stored begins.
func (w *Writer) enter(address uint64, stored []byte, size int) error {
	entries := w.arena.entry[w.arena.n:]
	n := 0
	switch parts := w.desc.Partitions; w.desc.Partitioner {
	case abi.PartitionHash:
		for at := 0; at < size; n++ {
			r := parseRecord(stored[at:])
			key := stored[at+r.key : at+r.key+r.klen]
			p := abi.HashPartition(key, parts)
			entries[n] = w.entryOf(stored, at+r.key, r.klen, p, address+uint64(at))
			at += r.total
		}
	case abi.PartitionRange:
		for at := 0; at < size; n++ {
			r := parseRecord(stored[at:])
			key := stored[at+r.key : at+r.key+r.klen]
			p := w.bounds.partition(key, keyPrefix(stored, at+r.key, r.klen))
			entries[n] = w.entryOf(stored, at+r.key, r.klen, p, address+uint64(at))
			at += r.total
		}
	case abi.PartitionGiven:
		for at := 0; at < size; n++ {
			r := parseRecord(stored[at:])
			if r.klen < 4 {
				return fmt.Errorf("%s: a key of %d bytes, which must begin with the 4 bytes of its partition", w.what, r.klen)
			}
			key := at + r.key
			p := binary.BigEndian.Uint32(stored[key:])
			if uint64(p) >= uint64(parts) {
				return fmt.Errorf("%s: a record for partition %d, but there are partitions 0 to %d", w.what, p, parts-1)
			}
			// The record without the partition begins later; its head takes no more
			// bytes than before, so the rest stays where it is.
			klen, vlen := r.klen-4, r.total-r.key-r.klen
			var head [2 * binary.MaxVarintLen64]byte
			h := binary.PutUvarint(head[:], uint64(klen))
			h += binary.PutUvarint(head[h:], uint64(vlen))
			start := key + 4 - h
			copy(stored[start:], head[:h])
			entries[n] = w.entryOf(stored, key+4, klen, int(p), address+uint64(start))
			at += r.total
		}
	}
	w.arena.n += n
	return nil
}

// entryOf makes the entry of a record at address, whose key is b[at:at+klen].
func (w *Writer) entryOf(b []byte, at, klen, partition int, address uint64) entry {
	ref := uint64(partition)<<partitionShift | address
	if !w.desc.Sorted {
		return entry{ref: ref}
	}
	return entry{keyPrefix(b, at, klen), ref | uint64(min(klen, longKey))<<klenShift}
}

// Spill implements memory.Spiller.
func (w *Writer) Spill(need int64) (freed int64, err error) {
	if w.busy || w.closed {
		return 0, nil
	}
	freed = w.arena.shrink(need)
	if freed >= need || w.arena.n == 0 {
		return freed, nil
	}
	if err := w.spill(); err != nil {
		return freed, w.fail(err)
	}
	return freed + w.arena.shrink(need-freed), nil
}

// spill writes what is in memory to a run. The arena keeps its memory.
func (w *Writer) spill() error {
	w.busy = true
	defer func() { w.busy = false }()
	if len(w.rounds.files) == 0 {
		if _, err := w.rounds.newFile(); err != nil {
			return err
		}
	}
	file := w.rounds.files[0]
	r := file.newRun()
	w.blocks.open(file.f, file.size)
	if err := w.writeArena(r.extend); err != nil {
		return err
	}
	if err := w.blocks.flush(); err != nil {
		return err
	}
	file.add(r)
	w.runs = append(w.runs, r)
	w.metrics.Spills++
	w.metrics.MemorySpilled, w.inMemory = w.metrics.MemorySpilled+w.inMemory, 0
	w.metrics.DiskSpilled += r.length
	return nil
}

// writeArena writes the records in memory in order, calls end after each
// partition, and forgets them.
func (w *Writer) writeArena(end func(partition uint32, s segment) error) error {
	entries, done, err := w.arena.sort(w.desc.Partitions, w.desc.Sorted)
	if err != nil {
		return err
	}
	defer done()
	b := w.blocks
	for len(entries) > 0 {
		p, n := entries[0].partition(), 1
		for n < len(entries) && entries[n].partition() == p {
			n++
		}
		b.begin(uint32(p))
		if err := w.gather(entries[:n]); err != nil {
			return err
		}
		entries = entries[n:]
		s, err := b.end()
		if err != nil {
			return err
		}
		if err := end(uint32(p), s); err != nil {
			return err
		}
	}
	w.arena.clear()
	return nil
}

// gather writes the records of entries. They lie all over the arena, so each
// costs a cache miss; looking at a few before any of them is copied makes the
// misses overlap.
func (w *Writer) gather(entries []entry) error {
	const few = 16
	var recs [few][]byte
	for len(entries) > 0 {
		n := min(few, len(entries))
		for i, e := range entries[:n] {
			rec := w.arena.at(e.ref & addressMask)
			recs[i] = rec[:recordLen(rec)]
		}
		for _, rec := range recs[:n] {
			if err := w.blocks.add(rec); err != nil {
				return err
			}
		}
		entries = entries[n:]
	}
	return nil
}
