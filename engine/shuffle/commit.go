package shuffle

import (
	"fmt"
	"os"

	"github.com/quern-project/quern/engine/msg"
)

// Commit completes the data file and says where it is. An output without
// records has no file. After an error nothing is left behind.
func (w *Writer) Commit() (msg.MapOutput, error) {
	if w.err != nil {
		w.Abort()
		return msg.MapOutput{}, w.err
	}
	if w.closed {
		return msg.MapOutput{}, fmt.Errorf("%s: committed after its end", w.what)
	}
	out := msg.MapOutput{
		Shuffle: w.id.shuffle,
		Map:     w.id.mapPart,
		Task:    w.id.task,
		Records: w.metrics.Records,
	}
	if w.metrics.Records > 0 {
		if err := w.fail(w.commitFile()); err != nil {
			w.Abort()
			return msg.MapOutput{}, err
		}
		out.Path, out.Bytes = w.base, w.metrics.FileBytes
	}
	w.free()
	return out, nil
}

// commitFile writes the data file under another name and renames it.
func (w *Writer) commitFile() (err error) {
	temp := w.base + ".tmp"
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return diskError(w.what, err)
	}
	defer func() {
		if e := file.Close(); err == nil && e != nil {
			err = diskError(w.what, e)
		}
		if err == nil {
			if e := os.Rename(temp, w.base); e != nil {
				err = diskError(w.what, e)
			}
		}
		if err != nil {
			os.Remove(temp)
		}
	}()
	var index indexWriter
	add := func(partition uint32, s segment) error { return index.add(w.blocks, partition, s) }
	if len(w.runs) == 0 {
		w.busy = true
		w.blocks.open(file, 0)
		err = w.writeArena(add)
	} else {
		err = w.mergeInto(file, add)
	}
	if err != nil {
		return err
	}
	if err := index.finish(w.blocks, w.id); err != nil {
		return err
	}
	w.metrics.FileBytes = w.blocks.position()
	return nil
}

// mergeInto merges the spilled runs, and what is in memory, into the data file.
func (w *Writer) mergeInto(file *os.File, add func(partition uint32, s segment) error) error {
	if w.arena.n > 0 {
		if err := w.spill(); err != nil {
			return err
		}
	}
	w.arena.close()
	runs := w.runs
	budget := w.config.Memory.Available()
	for {
		var err error
		if runs, err = w.rounds.narrow(runs, budget); err != nil {
			return err
		}
		open, err := openRuns(w.config.Memory, &w.decomp, runs)
		if err == nil {
			w.blocks.open(file, 0)
			err = mergeRuns(w.blocks, open, w.desc.Sorted, add)
			closeRuns(open)
			return err
		}
		// Others have taken memory in the meantime: merge fewer at once.
		budget = loadOf(runs[:len(open)]).cost
		closeRuns(open)
		if len(runs) <= 2 {
			return err
		}
	}
}

// Abort gives the output up and removes its files. After Commit, or when called
// again, it does nothing.
func (w *Writer) Abort() {
	if !w.closed {
		w.free()
	}
}

// free gives back memory and scratch files.
func (w *Writer) free() {
	w.closed = true
	w.config.Memory.Unregister(w)
	w.rounds.close()
	w.decomp.close()
	w.arena.close()
	if w.blocks != nil {
		w.blocks.close()
	}
}
