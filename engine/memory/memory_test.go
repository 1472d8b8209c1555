package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/engine/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sorter is a consumer that holds memory and can spill all of it.
type sorter struct {
	task  *Task
	held  int64
	spill error // what spilling fails with
	asked []int64
}

func (s *sorter) Spill(need int64) (int64, error) {
	s.asked = append(s.asked, need)
	if s.spill != nil {
		return 0, s.spill
	}
	n := s.held
	s.held = 0
	s.task.Release(n)
	return n, nil
}

func (s *sorter) grow(t *testing.T, n int64) {
	t.Helper()
	if err := s.task.Acquire(n); err != nil {
		t.Fatal(err)
	}
	s.held += n
}

func newTask(t *testing.T, p *Pool, id msg.TaskID, limit int64) *Task {
	t.Helper()
	task := p.NewTask(t.Context(), id, limit)
	t.Cleanup(func() { task.Close() })
	return task
}

func TestATaskAloneMayHaveThePool(t *testing.T) {
	p := NewPool(1000)
	a := newTask(t, p, 1, 0)
	if got := a.Available(); got != 1000 {
		t.Errorf("%d bytes are available", got)
	}
	if err := a.Acquire(1000); err != nil {
		t.Fatal(err)
	}
	err := a.Acquire(1)
	var pool *PoolError
	if !errors.As(err, &pool) {
		t.Fatalf("the error is %v", err)
	}
	want := PoolError{Task: 1, Size: 1000, Tasks: 1, Used: 1000, Wanted: 1, Setting: "--executor-memory (quern.executor.memory)"}
	if *pool != want {
		t.Errorf("the error is %+v instead of %+v", *pool, want)
	}
	if !strings.Contains(err.Error(), "raise --executor-memory (quern.executor.memory)") {
		t.Errorf("the message is %q", err)
	}
	a.Release(400)
	if a.Used() != 600 || a.Peak() != 1000 || p.Used() != 600 || a.Available() != 400 {
		t.Errorf("used %d, peak %d, pool %d, available %d", a.Used(), a.Peak(), p.Used(), a.Available())
	}
	if leaked := a.Close(); leaked != 600 || p.Used() != 0 {
		t.Errorf("%d bytes leaked, %d are still used", leaked, p.Used())
	}
	a.Release(600) // too late to matter
	if err := a.Acquire(1); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed task gets %v", err)
	}
	if leaked := a.Close(); leaked != 0 {
		t.Errorf("the second Close finds %d bytes", leaked)
	}
}

func TestATaskOverItsOwnLimitIsToldSo(t *testing.T) {
	p := NewPool(10 << 20)
	a := newTask(t, p, 7, 2<<20)
	if err := a.Acquire(1536 << 10); err != nil {
		t.Fatal(err)
	}
	err := a.Acquire(1 << 20)
	var limit *LimitError
	if !errors.As(err, &limit) {
		t.Fatalf("the error is %v", err)
	}
	want := LimitError{Task: 7, Limit: 2 << 20, Used: 1536 << 10, Wanted: 1 << 20, Setting: "--task-memory (quern.task.memory)"}
	if *limit != want {
		t.Errorf("the error is %+v instead of %+v", *limit, want)
	}
	const text = "task 7: over its memory limit of 2.0 MiB: it uses 1.5 MiB and needs another 1.0 MiB: " +
		"raise --task-memory (quern.task.memory), or use more partitions"
	if err.Error() != text {
		t.Errorf("the message is %q", err)
	}
	if err := a.Acquire(1 << 62); !errors.As(err, &limit) {
		t.Errorf("an absurd request gets %v", err)
	}
	if err := a.Acquire(-1); err == nil {
		t.Error("a negative request is granted")
	}
}

func TestConsumersOfTheTaskAreAskedToSpillBeforeItIsRefused(t *testing.T) {
	p := NewPool(1000)
	a := newTask(t, p, 1, 800)
	first, second := &sorter{task: a}, &sorter{task: a}
	a.Register(first)
	a.Register(second)
	first.grow(t, 100)
	second.grow(t, 600)
	if err := a.Acquire(250); err != nil { // 150 too many: the first is not enough
		t.Fatal(err)
	}
	if first.held != 0 || second.held != 0 || fmt.Sprint(first.asked, second.asked) != "[150] [50]" {
		t.Errorf("they hold %d and %d and were asked for %v and %v", first.held, second.held, first.asked, second.asked)
	}
	a.Unregister(first)
	first.grow(t, 500)
	var limit *LimitError
	if err := a.Acquire(200); !errors.As(err, &limit) {
		t.Errorf("what is no longer registered is spilled: %v", err)
	}
}

func TestAFailedSpillFailsTheRequest(t *testing.T) {
	p := NewPool(1000)
	a := newTask(t, p, 3, 0)
	full := errors.New("the disk is full")
	s := &sorter{task: a, spill: full}
	a.Register(s)
	s.grow(t, 900)
	if err := a.Acquire(200); !errors.Is(err, full) || !strings.Contains(err.Error(), "task 3: spilling") {
		t.Errorf("the error is %v", err)
	}
	if a.Used() != 900 {
		t.Errorf("%d bytes are used", a.Used())
	}
}

// nested acquires while it spills.
type nested struct {
	task *Task
	err  error
}

func (n *nested) Spill(int64) (int64, error) {
	n.err = n.task.Acquire(500)
	return 0, nil
}

func TestSpillingDoesNotSpillAgain(t *testing.T) {
	p := NewPool(1000)
	a := newTask(t, p, 1, 0)
	n := &nested{task: a}
	a.Register(n)
	if err := a.Acquire(900); err != nil {
		t.Fatal(err)
	}
	var pool *PoolError
	if err := a.Acquire(200); !errors.As(err, &pool) || !errors.As(n.err, &pool) {
		t.Errorf("the errors are %v and, within Spill, %v", err, n.err)
	}
}

func TestSharesShrinkAsTasksAreOpened(t *testing.T) {
	p := NewPool(1000)
	a := newTask(t, p, 1, 0)
	s := &sorter{task: a}
	a.Register(s)
	s.grow(t, 900)
	b := newTask(t, p, 2, 0)
	if got := b.Available(); got != 100 {
		t.Errorf("%d bytes are available to the newcomer", got)
	}
	if err := b.Acquire(100); err != nil {
		t.Fatal(err)
	}
	s.grow(t, 10) // over the new share of 500: it must spill itself
	if s.held != 10 || p.Used() != 110 {
		t.Errorf("it holds %d of %d", s.held, p.Used())
	}
	var pool *PoolError
	if err := b.Acquire(401); !errors.As(err, &pool) || pool.Tasks != 2 {
		t.Errorf("more than a share is given: %v", err)
	}
	if err := b.Acquire(400); err != nil {
		t.Error(err)
	}
}

func TestAGuaranteedHalfShareIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1000)
		a := newTask(t, p, 1, 0)
		if err := a.Acquire(1000); err != nil {
			t.Fatal(err)
		}
		b := newTask(t, p, 2, 0)
		s := &sorter{task: b}
		b.Register(s)
		granted := make(chan error, 1)
		go func() { granted <- b.Acquire(250) }()
		synctest.Wait()
		a.Release(200)
		synctest.Wait()
		select {
		case err := <-granted:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		a.Release(50)
		if err := <-granted; err != nil || len(s.asked) > 0 {
			t.Errorf("it got %v and was made to spill %v", err, s.asked)
		}
	})
}

func TestTheSecondHalfIsWaitedForWhenThereIsNothingToSpill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1000)
		a := newTask(t, p, 1, 0)
		if err := a.Acquire(600); err != nil {
			t.Fatal(err)
		}
		b := newTask(t, p, 2, 0)
		s := &sorter{task: b}
		b.Register(s)
		granted := make(chan error, 1)
		s.grow(t, 10)
		go func() { granted <- b.Acquire(480) }()
		synctest.Wait()
		if len(s.asked) == 0 || s.held != 0 {
			t.Errorf("it was asked to spill %v", s.asked)
		}
		a.Close()
		if err := <-granted; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitingEndsWithTheTasksContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1000)
		a := newTask(t, p, 1, 0)
		if err := a.Acquire(1000); err != nil {
			t.Fatal(err)
		}
		killed := errors.New("killed by the user")
		ctx, cancel := context.WithCancelCause(t.Context())
		b := p.NewTask(ctx, 2, 0)
		defer b.Close()
		got := make(chan error, 1)
		go func() { got <- b.Acquire(100) }()
		synctest.Wait()
		cancel(killed)
		if err := <-got; !errors.Is(err, killed) {
			t.Errorf("the error is %v", err)
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes are used", b.Used())
		}
	})
}

func TestAWaitingTaskIsRefusedWhenMoreTasksAreOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1000)
		a := newTask(t, p, 1, 0)
		if err := a.Acquire(1000); err != nil {
			t.Fatal(err)
		}
		b := newTask(t, p, 2, 0)
		got := make(chan error, 1)
		go func() { got <- b.Acquire(400) }()
		synctest.Wait()
		newTask(t, p, 3, 0)
		var pool *PoolError
		if err := <-got; !errors.As(err, &pool) || pool.Tasks != 3 {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestReleasingMoreThanIsHeldIsAFaultOfTheCaller(t *testing.T) {
	p := NewPool(1000)
	a := newTask(t, p, 5, 0)
	defer func() {
		if msg := fmt.Sprint(recover()); !strings.Contains(msg, "task 5 releases 2 bytes but holds 1") {
			t.Errorf("it says %q", msg)
		}
	}()
	if err := a.Acquire(1); err != nil {
		t.Fatal(err)
	}
	a.Release(2)
}

func TestBuffersAreDrawnFromTheTaskAndReused(t *testing.T) {
	p := NewPool(1 << 20)
	defer p.Close()
	a := newTask(t, p, 1, 600<<10)
	b, err := a.Alloc(100_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 100_000 || cap(b) != 102_400 || a.Used() != 102_400 {
		t.Errorf("length %d, capacity %d, used %d", len(b), cap(b), a.Used())
	}
	b[99_999] = 7
	a.Free(b)
	again, err := a.Alloc(100_001)
	if err != nil {
		t.Fatal(err)
	}
	if again[99_999] != 7 {
		t.Error("the buffer is another one")
	}
	var limit *LimitError
	if _, err := a.Alloc(600 << 10); !errors.As(err, &limit) {
		t.Errorf("the error is %v", err)
	}
	a.Free(again)
	if p.free.total != 102_400 || a.Used() != 0 {
		t.Errorf("%d bytes are kept, %d used", p.free.total, a.Used())
	}
	none, err := a.Alloc(0)
	if err != nil || len(none) != 0 {
		t.Errorf("a buffer of nothing: %v, %v", none, err)
	}
	a.Free(none)
}

func TestBuffersKeptForReuseAreGivenUpWhenMemoryIsNeeded(t *testing.T) {
	p := NewPool(1 << 20)
	a := newTask(t, p, 1, 0)
	var bufs [][]byte
	for range 4 {
		b, err := a.Alloc(256 << 10)
		if err != nil {
			t.Fatal(err)
		}
		bufs = append(bufs, b)
	}
	for _, b := range bufs {
		a.Free(b)
	}
	if p.free.total != 1<<20 {
		t.Errorf("%d bytes are kept", p.free.total)
	}
	if err := a.Acquire(300 << 10); err != nil {
		t.Fatal(err)
	}
	if p.free.total != 512<<10 {
		t.Errorf("%d bytes are kept beside 300 KiB in use", p.free.total)
	}
	p.Close()
	if p.free.total != 0 || len(p.free.bySize) != 0 {
		t.Errorf("%d bytes are kept by a closed pool", p.free.total)
	}
}

// TestEveryTaskFinishes runs random tasks on few slots against one pool. Every
// task must end, by finishing or by being refused; what they hold together must
// fit into the pool; and in the end nothing is held.
func TestEveryTaskFinishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool(rapid.Int64Range(0, 1000).Draw(t, "pool"))
		slots := rapid.IntRange(1, 6).Draw(t, "slots")
		limit := rapid.Int64Range(0, 800).Draw(t, "limit")
		tasks := make(chan []int64, 40)
		for range rapid.IntRange(1, 40).Draw(t, "tasks") {
			tasks <- rapid.SliceOfN(rapid.Int64Range(-500, 500), 0, 20).Draw(t, "steps")
		}
		close(tasks)
		var wg sync.WaitGroup
		for slot := range slots {
			wg.Go(func() {
				for steps := range tasks {
					runSteps(t, p, msg.TaskID(slot), limit, steps)
				}
			})
		}
		wg.Wait()
		if p.used != 0 || p.open != 0 || p.waiting != 0 {
			t.Fatalf("in the end %d bytes are used by %d tasks, %d wait", p.used, p.open, p.waiting)
		}
		p.Close()
	})
}

// runSteps is a task with a spillable consumer and one that cannot spill. A
// negative step is a request of the former.
func runSteps(t *rapid.T, p *Pool, id msg.TaskID, limit int64, steps []int64) {
	task := p.NewTask(context.Background(), id, limit)
	s := &sorter{task: task}
	task.Register(s)
	firm := int64(0)
	for i, n := range steps {
		var err error
		if n < 0 {
			if err = task.Acquire(-n); err == nil {
				s.held -= n
			}
		} else if err = task.Acquire(n); err == nil {
			firm += n
		}
		p.mu.Lock()
		if p.used < 0 || p.used > p.size || task.used < 0 || limit > 0 && task.used > limit || p.free.total+p.used > p.size {
			t.Errorf("task %d uses %d of %d, the pool %d of %d", id, task.used, limit, p.used, p.size)
		}
		p.mu.Unlock()
		var overLimit *LimitError
		var overPool *PoolError
		if err != nil && !errors.As(err, &overLimit) && !errors.As(err, &overPool) {
			t.Errorf("task %d: %v", id, err)
		}
		if i%3 == 2 {
			task.Release(firm / 2)
			firm -= firm / 2
		}
	}
	if leaked := task.Close(); leaked != firm+s.held {
		t.Errorf("task %d: %d bytes leaked instead of %d", id, leaked, firm+s.held)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	p := NewPool(1 << 30)
	task := p.NewTask(context.Background(), 1, 0)
	defer task.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := task.Acquire(64 << 10); err != nil {
			b.Fatal(err)
		}
		task.Release(64 << 10)
	}
}

func BenchmarkAllocFree(b *testing.B) {
	p := NewPool(1 << 30)
	defer p.Close()
	task := p.NewTask(context.Background(), 1, 0)
	defer task.Close()
	b.ReportAllocs()
	for b.Loop() {
		buf, err := task.Alloc(1 << 20)
		if err != nil {
			b.Fatal(err)
		}
		task.Free(buf)
	}
}
