package quern

import (
	"runtime"
	"sync/atomic"

	"github.com/quern-project/quern/sdk/abi"
)

// fork is what a clone must know to tell the driver's goroutines from those that
// the task has started: numbers of goroutines ascend, as a guest has one processor.
var fork struct {
	caller atomic.Uint64 // the goroutine that runs the job, and in a clone the task
	mark   atomic.Pointer[forkMark]
	cloned atomic.Bool // this is a clone
}

// forkMark stands between the goroutines from before a fork and those from after
// it.
type forkMark struct {
	id atomic.Uint64 // of a goroutine started right before the fork; 0 until it has run
}

// noteFork is called right before the host makes the image of a job. Another
// goroutine that ran in between might note a fork of its own, so nothing after
// the go statement allocates or waits. What comes before may: if another
// goroutine has forked in the meantime, this one goes on in clones as well.
func noteFork() {
	mark, id := new(forkMark), goroutineID()
	runtime.Gosched() // let the marks of earlier jobs run and be gone
	go func() { mark.id.Store(goroutineID()) }()
	if fork.cloned.Load() {
		parkDrivers()
	}
	fork.mark.Store(mark)
	fork.caller.Store(id)
}

// parkDrivers never returns, in a clone, to a goroutine that was the driver's
// already, except to the one that has become the task's.
func parkDrivers() {
	id := goroutineID()
	if id == fork.caller.Load() {
		return
	}
	mark := fork.mark.Load()
	for mark.id.Load() == 0 {
		runtime.Gosched() // its goroutine is ready to run
	}
	if id < mark.id.Load() {
		select {}
	}
}

// inDriver passes on the result of a call that belongs to the driver. A goroutine
// of the driver's may have been anywhere when it was cloned, in the middle of an
// action, too. So where such a call finds itself in a task, it is parked here if
// it was not before.
func inDriver(result int64) int64 {
	if result == int64(abi.ErrInTask) {
		parkDrivers()
	}
	return result
}
