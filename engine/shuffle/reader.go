package shuffle

import (
	"fmt"
	"io"
	"os"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Reader delivers one partition of a shuffle, in the order of
// abi.ShuffleDesc.Sorted. It belongs to the task's goroutine.
type Reader struct {
	config    Config
	desc      abi.ShuffleDesc
	partition uint32
	what      string // names the reader in errors
	index     indexReader
	decomp    decompressor

	// In sequence, if the order is that of the outputs: blocks is what is being
	// read, rest its records that are not yet delivered, runs what comes next.
	blocks *blockReader
	rest   []byte
	runs   []*run
	found  []*run // may have an opened file that nobody has taken
	// Outputs whose segments were not looked up yet.
	outputs []msg.MapOutput

	// Otherwise a merge.
	merging bool
	merger  merger
	open    []*blockReader
	rounds  rounds

	closed  bool
	err     error // the first one
	metrics ReadMetrics
}

// maxInFlight is the most memory in bytes that the buffers of a merge of map
// outputs take, however much there is.
const maxInFlight = 48 << 20

// NewReader opens a partition of a shuffle whose outputs are given by map
// partition, ascending. For a sorted shuffle it finds all segments, and when
// they are more than memory allows to merge at once, it merges them to fewer.
// Errors are those of Next. The reader must be closed.
func NewReader(c Config, d abi.ShuffleDesc, partition int, outputs []msg.MapOutput) (*Reader, error) {
	if err := c.check(d); err != nil {
		return nil, err
	}
	if partition < 0 || partition >= d.Partitions {
		return nil, fmt.Errorf("shuffle %d has partitions 0 to %d, there is no %d", d.ID, d.Partitions-1, partition)
	}
	r := &Reader{
		config:    c,
		desc:      d,
		partition: uint32(partition),
		what:      fmt.Sprintf("shuffle %d, reading partition %d", d.ID, partition),
		outputs:   outputs,
	}
	if d.Sorted {
		if err := r.startMerge(); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Metrics says what was done so far.
func (r *Reader) Metrics() ReadMetrics {
	m := r.metrics
	m.DiskSpilled = r.rounds.written
	return m
}

// Next fills buf with as many of the next whole records as fit and answers
// their length in bytes. If not even one fits, n is larger than len(buf): the
// size of that record, which is not consumed. At the end it answers io.EOF. A
// map output that cannot be read is a *FetchError; a lack of memory is an error
// of package memory. No further record comes after an error.
func (r *Reader) Next(buf []byte) (n int, err error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.closed:
		return 0, fmt.Errorf("%s: read from after it was closed", r.what)
	case r.merging:
		n, err = r.nextMerged(buf)
	default:
		n, err = r.nextInSequence(buf)
	}
	if err != nil {
		r.err = err
		return 0, err
	}
	return n, nil
}

// nextInSequence is Next when records come as they lie in the files.
func (r *Reader) nextInSequence(buf []byte) (n int, err error) {
	for {
		if len(r.rest) == 0 {
			ok, err := r.nextBlock()
			if err != nil {
				return 0, err
			}
			if !ok && n == 0 {
				return 0, io.EOF
			}
			if !ok {
				return n, nil
			}
		}
		fit := 0
		for fit < len(r.rest) {
			rec := parseRecord(r.rest[fit:])
			if rec.total > len(r.rest)-fit {
				return 0, r.blocks.fail(errRecord)
			}
			if rec.total > len(buf)-n-fit {
				if n+fit == 0 {
					return rec.total, nil
				}
				break
			}
			fit += rec.total
			r.metrics.Records++
		}
		n += copy(buf[n:], r.rest[:fit])
		r.rest = r.rest[fit:]
		if len(r.rest) > 0 {
			return n, nil
		}
	}
}

// nextBlock makes rest the records of the next block; false at the end.
func (r *Reader) nextBlock() (bool, error) {
	for {
		if r.blocks != nil {
			ok, err := r.blocks.load()
			if err != nil {
				return false, err
			}
			if ok {
				r.rest, err = r.blocks.records()
				return err == nil, err
			}
			r.blocks.close()
			r.blocks = nil
		}
		next, err := r.nextRun()
		if next == nil || err != nil {
			return false, err
		}
		if r.blocks, err = openRun(r.config.Memory, &r.decomp, next); err != nil {
			return false, err
		}
	}
}

// nextRun is the next one that has records of the partition; nil at the end.
func (r *Reader) nextRun() (*run, error) {
	if len(r.runs) > 0 {
		next := r.runs[0]
		r.runs = r.runs[1:]
		return next, nil
	}
	for len(r.outputs) > 0 {
		o := r.outputs[0]
		r.outputs = r.outputs[1:]
		next, err := r.find(o)
		if next != nil || err != nil {
			return next, err
		}
	}
	return nil, nil
}

// find looks up the partition in a map output; nil if it has no records.
func (r *Reader) find(o msg.MapOutput) (*run, error) {
	if o.Records == 0 {
		return nil, nil
	}
	out := &mapOutput{MapOutput: o, reduce: r.partition}
	f, err := os.Open(o.Path)
	if err != nil {
		return nil, out.fetchError(-1, 0, err)
	}
	id := identity{shuffle: msg.ShuffleID(r.desc.ID), mapPart: o.Map, task: o.Task, partitions: r.desc.Partitions}
	s, found, err := r.index.find(f, o.Bytes, id, r.partition)
	if err != nil {
		err = out.fetchError(-1, 0, err)
	}
	if err != nil || !found {
		f.Close()
		return nil, err
	}
	r.metrics.Bytes += s.length
	next := &run{segment: s, out: out}
	if !r.desc.Sorted {
		r.found = r.found[:0] // those before have been opened
	}
	if len(r.found) < r.config.files() {
		next.opened = f
	} else {
		f.Close()
	}
	r.found = append(r.found, next)
	return next, nil
}

// startMerge finds all segments and opens them, after merging them to as few as
// memory allows to have open at once.
func (r *Reader) startMerge() error {
	var runs []*run
	for {
		next, err := r.nextRun()
		if err != nil {
			return err
		}
		if next == nil {
			break
		}
		runs = append(runs, next)
	}
	r.rounds = rounds{what: r.what, config: r.config, decomp: &r.decomp, sorted: true, create: r.newScratch}
	budget := min(r.config.Memory.Available()/2, maxInFlight)
	for {
		var err error
		if !r.rounds.fit(loadOf(runs), budget) {
			if runs, err = r.narrow(runs, budget); err != nil {
				return err
			}
		}
		if len(runs) <= 1 {
			r.runs = runs // nothing to be merged: read it in sequence
			return nil
		}
		if r.open, err = openRuns(r.config.Memory, &r.decomp, runs); err == nil {
			break
		}
		// Others have taken memory in the meantime: merge fewer at once.
		budget = loadOf(runs[:len(r.open)]).cost
		closeRuns(r.open)
		r.open = nil
		if len(runs) == 2 {
			return err
		}
	}
	r.merging = true
	for _, b := range r.open {
		c := cursor{blocks: b}
		if err := c.start(); err != nil {
			return err
		}
		r.merger.cursors = append(r.merger.cursors, c)
	}
	r.merger.reset()
	return nil
}

// narrow merges runs to fewer, in files.
func (r *Reader) narrow(runs []*run, budget int64) ([]*run, error) {
	w, err := newBlockWriter(r.config, r.what)
	if err != nil {
		return nil, err
	}
	defer w.close()
	r.rounds.writer = w
	return r.rounds.narrow(runs, budget-writerCost(r.config))
}

func (r *Reader) newScratch() (*os.File, error) {
	return os.CreateTemp(r.config.Dir, fmt.Sprintf("shuffle_%d_reduce%d_*.merge", r.desc.ID, r.partition))
}

// nextMerged is Next when records come from a merge.
func (r *Reader) nextMerged(buf []byte) (n int, err error) {
	for {
		c := r.merger.top()
		if c == nil {
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		}
		rec := c.current()
		if len(rec) > len(buf)-n {
			if n == 0 {
				return len(rec), nil
			}
			return n, nil
		}
		n += copy(buf[n:], rec)
		r.metrics.Records++
		if err := r.merger.next(); err != nil {
			return 0, err
		}
	}
}

// Close frees memory and files. It may be called twice.
func (r *Reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.blocks != nil {
		r.blocks.close()
	}
	closeRuns(r.open)
	for _, f := range r.found {
		if f.opened != nil {
			f.opened.Close()
		}
	}
	r.rounds.close()
	r.decomp.close()
	return nil
}
