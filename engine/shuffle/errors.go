package shuffle

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/quern-project/quern/engine/msg"
)

// FetchError is a map output that cannot be read as it was written: its file is
// missing, truncated or corrupted. The map task must run again.
type FetchError struct {
	msg.FetchLost
	Reduce int    // the partition that was wanted
	Path   string // the map output's file
	Block  int    // in the partition's segment, from 0; -1 if it is not the data but the file or its index
	Offset int64  // of the block in the file
	Cause  error
}

func (e *FetchError) Error() string {
	if e.Map < 0 { // not one, but not all are there
		return fmt.Sprintf("shuffle %d: partition %d cannot be read: %v", e.Shuffle, e.Reduce, e.Cause)
	}
	where := e.Path
	if e.Block >= 0 {
		where = fmt.Sprintf("%s, block %d at offset %d", e.Path, e.Block, e.Offset)
	}
	return fmt.Sprintf("shuffle %d: partition %d of the output of map %d (task %d) is lost: %s: %v: the map task must run again",
		e.Shuffle, e.Reduce, e.Map, e.Task, where, e.Cause)
}

func (e *FetchError) Unwrap() error { return e.Cause }

// mapOutput is what one reduce partition wants of a map output.
type mapOutput struct {
	msg.MapOutput
	reduce uint32
}

// fetchError says that the map output is lost, unless what went wrong is this
// process's own fault. block is -1 for the file and its index.
func (o *mapOutput) fetchError(block int, offset int64, cause error) error {
	if errors.Is(cause, syscall.EMFILE) || errors.Is(cause, syscall.ENFILE) {
		return fmt.Errorf("shuffle %d, partition %d: %w: raise the limit of open files (ulimit -n)", o.Shuffle, o.reduce, cause)
	}
	return &FetchError{
		FetchLost: msg.FetchLost{Executor: o.Executor, Shuffle: o.Shuffle, Map: o.Map, Task: o.Task},
		Reduce:    int(o.reduce),
		Path:      o.Path,
		Block:     block,
		Offset:    offset,
		Cause:     cause,
	}
}

// diskError explains what an operation on a file of one's own failed with.
func diskError(what string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s: %w: the disk is full: free space on it, or point quern.local.dir to another one", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
