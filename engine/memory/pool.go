// Package memory shares an executor's memory among its tasks.
//
// There is one [Pool] an executor, of quern.executor.memory bytes, and one
// [Task] in it for each running task attempt. Whatever a task holds it draws
// from its Task: growth of its linear memory and every host buffer, for sorting,
// shuffling or results. Drawing is accounting ([Task.Acquire], [Task.Release])
// or accounting with a buffer outside Go's heap ([Task.Alloc], [Task.Free]).
//
// # Who gets what
//
// With N open tasks, a task's share is 1/N of the pool. It may hold its share
// and is certain to get the first half of it, as in Spark:
//
//   - What would exceed the task's own limit is refused with a [LimitError].
//   - What would exceed the share is refused with a [PoolError].
//   - What lies in the first half of the share is granted, or waited for while
//     others still hold the memory from a time when fewer tasks were open.
//   - What lies in the second half is granted if it is free.
//
// Before a refusal, and before waiting in the second half, the task's own
// [Spiller] values are asked to free memory. A task never has another one
// spill: that happens by itself, because one that holds more than its share
// (the share shrinks when tasks are opened) must spill at its next Acquire.
//
// # Why it cannot deadlock
//
// A task only waits for what lies within its share. If all N tasks waited, what
// they hold together with what they wait for would be at most N shares, which
// is the pool; so each of the requests would fit into what is free, and none
// would wait. Hence some task is not waiting, and when it ends, its memory
// comes back. That asks one thing of the caller: a task must not wait for
// another task of its executor in any other way than by Acquire. A waiting task
// gives up when its context ends.
package memory

import "sync"

// Pool is the memory that all tasks of an executor share. Its methods may be
// called from any goroutine.
type Pool struct {
	size int64

	mu      sync.Mutex
	used    int64 // sum of the open tasks' used, 0 <= used <= size
	open    int64
	waiting int
	changed chan struct{} // closed, and replaced, when those who wait should look again
	free    recycler
}

// NewPool makes a pool of size bytes.
func NewPool(size int64) *Pool {
	return &Pool{size: max(size, 0), changed: make(chan struct{}), free: recycler{bySize: make(map[int][][]byte)}}
}

// Size is the pool's size in bytes.
func (p *Pool) Size() int64 { return p.size }

// Used is what all tasks hold together, in bytes.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Close gives the buffers that are kept for reuse back to the system. Tasks
// should have been closed before.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free.shrink(0)
}

// share is what each task may hold. The lock is held.
func (p *Pool) share() int64 { return p.size / max(p.open, 1) }

// wake lets those who wait look again. The lock is held.
func (p *Pool) wake() {
	if p.waiting > 0 {
		close(p.changed)
		p.changed = make(chan struct{})
	}
}
