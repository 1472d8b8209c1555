// Package executor is the executor: it runs the tasks that a driver launches, one
// in each slot, in sandboxes whose memory is a copy-on-write mapping of the
// driver's image, and connects each task's ports to the engine's sources,
// shuffles and sinks.
//
// An executor is given work with Launch and Kill and answers through the
// DriverClient; it shares nothing else with the driver.
package executor

import (
	"context"
	"log/slog"
	"sync"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/shuffle"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// DriverClient is the driver as an executor sees it.
type DriverClient interface {
	// Status reports a task. It does not block.
	Status(msg.StatusUpdate)
	// MapOutputs asks where a shuffle's outputs lie; the shuffle is complete.
	MapOutputs(context.Context, msg.MapOutputsRequest) (msg.MapOutputsReply, error)
	// Image answers an image with a reference that the caller releases.
	Image(context.Context, msg.ImageID) (*image.Image, error)
}

// Config is what an executor is made of. All fields but Log are needed.
type Config struct {
	ID      msg.ExecutorID
	Cores   int   // slots, at least 1
	Memory  int64 // bytes of the pool that all tasks share
	Program *sandbox.Program
	Files   *files.Grants
	Driver  DriverClient

	TaskMemory  int64  // bytes, limit of one task's linear memory
	MaxResult   int64  // bytes, limit of one task's result
	LocalDir    string // the executor's own folder for shuffle and spill files
	Compression string // of shuffle blocks: "s2", "zstd" or "none"

	// Faults makes attempts fail on purpose, for tests; the zero value none.
	Faults Faults
	// Log receives what tasks print.
	Log *slog.Logger
}

// Executor runs tasks until it is closed.
type Executor struct {
	cfg   Config
	pool  *memory.Pool
	ctx   context.Context
	stop  context.CancelCauseFunc
	slots sync.WaitGroup

	mu      sync.Mutex
	wake    sync.Cond
	queue   []*task // launched, not yet in a slot
	tasks   map[msg.TaskID]*task
	closing bool
}

// New starts an executor.
func New(cfg Config) *Executor {
	ctx, stop := context.WithCancelCause(context.Background())
	e := &Executor{
		cfg:   cfg,
		pool:  memory.NewPool(cfg.Memory),
		ctx:   ctx,
		stop:  stop,
		tasks: make(map[msg.TaskID]*task),
	}
	e.wake.L = &e.mu
	for range cfg.Cores {
		e.slots.Add(1)
		go e.slot()
	}
	return e
}

// Launch queues tasks. Each is answered by a final StatusUpdate. An executor
// that closes ignores it.
func (e *Executor) Launch(l msg.Launch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return
	}
	stage := &l.Stage
	for i := range l.Tasks {
		t := &task{executor: e, stage: stage, desc: &l.Tasks[i]}
		e.tasks[t.desc.ID] = t
		e.queue = append(e.queue, t)
		e.wake.Signal()
	}
}

// Kill stops tasks; those that have ended are not touched. A killed task is
// reported when it has really stopped.
func (e *Executor) Kill(k msg.Kill) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range k.Tasks {
		if t := e.tasks[id]; t != nil {
			t.kill(&KilledError{Reason: k.Reason})
		}
	}
}

// RemoveShuffles deletes what map tasks of the shuffles have written. It does not
// wait for that.
func (e *Executor) RemoveShuffles(m msg.RemoveShuffles) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return
	}
	e.slots.Go(func() {
		for _, id := range m.Shuffles {
			if err := shuffle.Remove(e.cfg.LocalDir, id); err != nil {
				e.cfg.Log.Warn("a shuffle that is not needed any more stays on disk", "cause", err)
			}
		}
	})
}

// KilledError is the cause with which a task's context ends.
type KilledError struct{ Reason string }

func (e *KilledError) Error() string { return "killed: " + e.Reason }

// Close kills all tasks, waits until each has really stopped and is reported,
// and gives back what the executor holds.
func (e *Executor) Close() {
	e.mu.Lock()
	e.closing = true
	e.stop(&KilledError{Reason: "the executor is closing"})
	e.wake.Broadcast()
	e.mu.Unlock()
	e.slots.Wait()
	e.pool.Close()
}

// slot runs tasks one after the other in one sandbox.
func (e *Executor) slot() {
	defer e.slots.Done()
	box := e.cfg.Program.NewSlot()
	defer box.Close()
	for {
		t := e.next()
		if t == nil {
			return
		}
		update := t.run(box)
		e.mu.Lock()
		delete(e.tasks, t.desc.ID)
		e.mu.Unlock()
		e.cfg.Driver.Status(update)
	}
}

// next waits for a task; nil when the executor closes and there is none left.
func (e *Executor) next() *task {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 {
		if e.closing {
			return nil
		}
		e.wake.Wait()
	}
	t := e.queue[0]
	e.queue[0] = nil
	e.queue = e.queue[1:]
	t.ctx, t.cancel = context.WithCancelCause(e.ctx)
	if t.killed != nil {
		t.cancel(t.killed)
	}
	return t
}
