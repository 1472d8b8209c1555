package sched

import (
	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/msg"
)

// Ready is what the shell has to do, in the order of the fields. The slices are
// the scheduler's and are overwritten by the second call of Ready after this one;
// what their elements refer to stays valid.
type Ready struct {
	// Ended reports task attempts that are over, each once.
	Ended []dag.TaskEnd
	// Failed reports task sets that were given up.
	Failed []dag.TaskSetFailed
	// Kills lists tasks to stop. Each task is named at most once; it may have
	// ended meanwhile.
	Kills []Kill
}

// Kill asks an executor to stop tasks.
type Kill struct {
	Executor msg.ExecutorID
	msg.Kill
}

// Launch asks an executor to run tasks of one stage attempt. Tasks is the
// receiver's.
type Launch struct {
	Executor msg.ExecutorID
	msg.Launch
}

// Empty says whether there is nothing to do.
func (r *Ready) Empty() bool { return len(r.Ended) == 0 && len(r.Failed) == 0 && len(r.Kills) == 0 }

// reset empties the slices and lets go of what they referred to.
func (r *Ready) reset() {
	r.Ended = emptied(r.Ended)
	r.Failed = emptied(r.Failed)
	r.Kills = emptied(r.Kills)
}

func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}
