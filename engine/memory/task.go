package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/units"
)

// Task is what one task attempt draws its memory from.
//
// Acquire, Alloc, Register and Unregister belong to the task's goroutine, on
// which the Spillers are called too. All else may be called from any goroutine.
type Task struct {
	pool  *Pool
	ctx   context.Context
	id    msg.TaskID
	limit int64

	spillers []Spiller // the task's goroutine's
	spilling bool

	// Under the pool's lock. Nothing is used once closed.
	used, peak int64
	closed     bool
}

// Spiller is a consumer of memory that can move what it holds to disk.
type Spiller interface {
	// Spill frees memory, at least need bytes if it can, with Task.Release or
	// Task.Free, and answers how much; 0 when it has nothing to give. It is
	// called on the task's goroutine while an Acquire is going on. It may itself
	// acquire memory, which then has nobody spill.
	Spill(need int64) (freed int64, err error)
}

// NewTask opens a task. limit is the most it may hold in bytes; 0 for no limit
// but the pool's. When ctx ends, the task no longer waits for memory. It must
// be closed.
func (p *Pool) NewTask(ctx context.Context, id msg.TaskID, limit int64) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	p.wake() // shares have shrunk: who waits may have to spill or fail instead
	return &Task{pool: p, ctx: ctx, id: id, limit: limit}
}

// Close returns what the task still holds to the pool and says how many bytes
// that was. Later releases are ignored, later acquisitions refused.
func (t *Task) Close() (leaked int64) {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.closed {
		return 0
	}
	leaked = t.used
	p.used -= t.used
	t.used = 0
	t.closed = true
	p.open--
	p.wake()
	return leaked
}

// Used is what the task holds, in bytes.
func (t *Task) Used() int64 {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return t.used
}

// Peak is the most that the task ever held, in bytes.
func (t *Task) Peak() int64 {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return t.peak
}

// Available is how much the task would be granted now without waiting and
// without spilling, in bytes. It is a hint for how large buffers may be.
func (t *Task) Available() int64 {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(p.share()-t.used, p.size-p.used)
	if t.limit > 0 {
		n = min(n, t.limit-t.used)
	}
	return max(n, 0)
}

// Register adds a consumer that can be asked to spill. Consumers are asked in
// the order of their registration.
func (t *Task) Register(s Spiller) { t.spillers = append(t.spillers, s) }

// Unregister takes a consumer out again. One that is not registered is ignored.
func (t *Task) Unregister(s Spiller) {
	t.spillers = slices.DeleteFunc(t.spillers, func(o Spiller) bool { return o == s })
}

// Release returns n bytes. Returning more than the task holds is a fault of the
// caller and panics.
func (t *Task) Release(n int64) {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.closed {
		return
	}
	if n < 0 || n > t.used {
		panic(fmt.Sprintf("memory: task %d releases %d bytes but holds %d", t.id, n, t.used))
	}
	t.used -= n
	p.used -= n
	p.wake()
}

// Acquire draws n bytes, all or nothing: see the package's comment for when it
// waits, spills and refuses. Errors are *LimitError and *PoolError; what a
// Spiller failed with; ErrClosed; or, wrapped, the cause with which the task's
// context ended while Acquire waited.
func (t *Task) Acquire(n int64) error {
	if n < 0 {
		return fmt.Errorf("task %d: acquiring %d bytes of memory: the number must not be negative", t.id, n)
	}
	p := t.pool
	p.mu.Lock()
	for canSpill := true; ; {
		v := t.judge(n)
		switch {
		case v.grant:
			t.used += n
			t.peak = max(t.peak, t.used)
			p.used += n
			p.free.shrink(p.size - p.used)
			p.mu.Unlock()
			return nil
		case v.guaranteed || v.err == nil && !canSpill:
			changed := p.changed
			p.waiting++
			p.mu.Unlock()
			err := t.wait(changed)
			p.mu.Lock()
			p.waiting--
			if err != nil {
				p.mu.Unlock()
				return err
			}
			canSpill = true
		case !canSpill || v.short == 0:
			p.mu.Unlock()
			return v.err
		default:
			p.mu.Unlock()
			progress, err := t.spill(v.short)
			if err != nil {
				return err
			}
			canSpill = progress
			p.mu.Lock()
		}
	}
}

// verdict is what the pool says to a request. Neither granted nor with an error
// means that the task is entitled to it, but others hold the memory.
type verdict struct {
	grant      bool
	guaranteed bool  // entitled, and not to be made to spill for it
	short      int64 // what must be freed before it can be granted; 0 if spilling cannot help
	err        error // what to refuse with
}

// judge applies the rules. The lock is held.
func (t *Task) judge(n int64) verdict {
	p := t.pool
	if t.closed {
		return verdict{err: ErrClosed}
	}
	if t.limit > 0 && n > t.limit-t.used {
		return verdict{
			short: n - (t.limit - t.used),
			err:   &LimitError{Task: t.id, Limit: t.limit, Used: t.used, Wanted: n, Setting: "--task-memory (quern.task.memory)"},
		}
	}
	share, free := p.share(), p.size-p.used
	short := max(n-free, n-(share-t.used))
	switch {
	case short <= 0:
		return verdict{grant: true}
	case n > share-t.used:
		return verdict{short: short, err: &PoolError{
			Task: t.id, Size: p.size, Tasks: int(p.open), Used: t.used, Wanted: n, Setting: "--executor-memory (quern.executor.memory)",
		}}
	}
	return verdict{short: short, guaranteed: n <= share/2-t.used}
}

// wait blocks until the pool has changed or the task's context has ended.
func (t *Task) wait(changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-t.ctx.Done():
		return fmt.Errorf("task %d: waiting for memory of the executor: %w", t.id, context.Cause(t.ctx))
	}
}

// spill asks the consumers, one after the other, until need bytes are freed. It
// says whether the task holds less than before.
func (t *Task) spill(need int64) (progress bool, err error) {
	if t.spilling {
		return false, nil
	}
	t.spilling = true
	defer func() { t.spilling = false }()
	before, freed := t.Used(), int64(0)
	for _, s := range slices.Clone(t.spillers) {
		n, err := s.Spill(need - freed)
		if err != nil {
			return false, fmt.Errorf("task %d: spilling to free %s of memory: %w", t.id, units.Bytes(need), err)
		}
		if freed += n; freed >= need {
			break
		}
	}
	return t.Used() < before, nil
}

// ErrClosed refuses memory to a task that is closed.
var ErrClosed = errors.New("the task's memory is closed")
