package memory

import (
	"fmt"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/units"
)

// LimitError refuses what would take a task over its own limit. Sizes are bytes.
type LimitError struct {
	Task    msg.TaskID
	Limit   int64
	Used    int64 // held when it was refused
	Wanted  int64 // refused, in addition to Used
	Setting string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("task %d: over its memory limit of %s: it uses %s and needs another %s: raise %s, or use more partitions",
		e.Task, units.Bytes(e.Limit), units.Bytes(e.Used), units.Bytes(e.Wanted), e.Setting)
}

// PoolError refuses what would take a task over its share of the executor's
// memory. Sizes are bytes.
type PoolError struct {
	Task    msg.TaskID
	Size    int64 // the pool
	Tasks   int   // that share it
	Used    int64 // held by this task when it was refused
	Wanted  int64 // refused, in addition to Used
	Setting string
}

func (e *PoolError) Error() string {
	return fmt.Sprintf("task %d: over its share of the executor's memory (%s, shared by %d running tasks): "+
		"it uses %s and needs another %s: raise %s, run fewer tasks at a time, or use more partitions",
		e.Task, units.Bytes(e.Size), e.Tasks, units.Bytes(e.Used), units.Bytes(e.Wanted), e.Setting)
}
