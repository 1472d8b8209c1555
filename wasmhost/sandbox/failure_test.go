package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// inTask captures the driver of a scenario and hands a slot and a configuration of
// its first task to f.
func (w *world) inTask(f func(s *Slot, cfg TaskConfig), args ...string) {
	w.t.Helper()
	first := true
	w.start(&env{act: func(c *Call, n int32) {
		if first {
			f(w.slot(), TaskConfig{Image: w.capture(c, nil), Args: [3]uint32{0, uint32(n)}, Env: &env{}})
		}
		first = false
	}}, args...)
}

// fails runs a task that must fail with an error of type E, and then one that must
// not.
func fails[E error](t *testing.T, ctx context.Context, s *Slot, cfg TaskConfig) E {
	t.Helper()
	ret, _, err := s.Run(ctx, cfg)
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Errorf("task %v answered %d, error %T: %v; want a %v", cfg.Args, ret, err, err, reflect.TypeFor[E]())
	} else if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	harmless := cfg
	harmless.Args = [3]uint32{0, 0, 0}
	harmless.MemoryLimit, harmless.Grow = 0, nil
	if ret, _ := run(t, s, harmless); ret != 0 {
		t.Errorf("the task after a failed one answered %d", ret)
	}
	return e
}

func TestGoTaskFails(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, goGuest(t), heap)
		w.inTask(func(s *Slot, cfg TaskConfig) {
			ctx := context.Background()
			var stderr strings.Builder
			cfg.Stderr = &stderr
			part := func(p uint32) TaskConfig {
				cfg.Args[2] = p
				stderr.Reset()
				return cfg
			}
			if e := fails[*ExitError](t, ctx, s, part(1)); e != nil && e.Code != 7 {
				t.Error(e)
			}
			if e := fails[*ExitError](t, ctx, s, part(2)); e != nil && e.Code != 2 {
				t.Error(e)
			}
			if !strings.Contains(stderr.String(), "panic: the task is unhappy") {
				t.Errorf("standard error of a panic: %q", stderr.String())
			}
			if e := fails[*ExitError](t, ctx, s, part(11)); e != nil && e.Code != 0 {
				t.Error(e)
			}
			if e := fails[*ExitError](t, ctx, s, part(12)); e != nil && e.Code != 2 {
				t.Error(e)
			}
			if e := fails[*HostError](t, ctx, s, part(8)); e != nil && (e.Function != "boom" || e.Value != "boom") {
				t.Error(e)
			}
			fails[*HostError](t, ctx, s, part(9))
			if e := fails[*HostError](t, ctx, s, part(10)); !errors.Is(e, fs.ErrNotExist) {
				t.Error(e)
			}
			if _, _, err := s.Run(ctx, part(14)); err == nil || err.Error() != "the host gives up: file already exists" {
				t.Error(err)
			}
		}, "failing")
	})
}

func TestCTaskFails(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, cGuest(t), heap)
		w.inTask(func(s *Slot, cfg TaskConfig) {
			ctx := context.Background()
			id := func(n uint32) TaskConfig { cfg.Args = [3]uint32{0, n, 0}; return cfg }
			if e := fails[*ExitError](t, ctx, s, id(2)); e != nil && e.Code != 7 {
				t.Error(e)
			}
			e := fails[*Trap](t, ctx, s, id(3))
			if e == nil || e.Reason != "unreachable" || len(e.Stack) == 0 || !strings.Contains(e.Stack[0], "quern_task_1") {
				t.Errorf("%#v", e)
			}
			if e := fails[*Trap](t, ctx, s, id(10)); e == nil || e.Reason != "out of bounds memory access" {
				t.Error(e)
			}
		})
	})
}

func TestMemoryLimit(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		ctx := context.Background()
		refusal := errors.New("the executor's pool is empty")
		check := func(s *Slot, cfg TaskConfig) {
			t.Helper()
			cfg.MemoryLimit = 64 << 20
			e := fails[*MemoryError](t, ctx, s, cfg)
			if e == nil || e.Limit != 64<<20 || e.Use > e.Limit || e.Use+e.Want <= e.Limit || e.Cause != nil || e.End == nil {
				t.Errorf("%#v", e)
			}
			granted := int64(0)
			cfg.MemoryLimit = 0
			cfg.Grow = func(delta int64) error {
				if granted+delta > 16<<20 {
					return refusal
				}
				granted += delta
				return nil
			}
			e = fails[*MemoryError](t, ctx, s, cfg)
			if e == nil || !errors.Is(e, refusal) || e.Use != cfg.Image.Len()+granted {
				t.Errorf("%#v", e)
			}
			cfg.MemoryLimit, cfg.Grow = cfg.Image.Len()-1, nil
			fails[*MemoryError](t, ctx, s, cfg)
		}
		t.Run("go", func(t *testing.T) {
			w := newWorld(t, goGuest(t), heap)
			w.inTask(func(s *Slot, cfg TaskConfig) {
				cfg.Args[2] = 6
				check(s, cfg)
			}, "failing")
		})
		t.Run("c", func(t *testing.T) {
			w := newWorld(t, cGuest(t), heap)
			w.inTask(func(s *Slot, cfg TaskConfig) {
				cfg.Args[1] = 6
				check(s, cfg)
				// A guest that copes with the refusal is not failed for it.
				cfg.Args[1], cfg.MemoryLimit = 8, 64<<20
				ret, u := run(t, s, cfg)
				if ret < 50 || ret > 64 || u.Refused == nil {
					t.Errorf("%d allocations of 1 MiB fit into 64 MiB, usage %+v", ret, u)
				}
			})
		})
	})
}

func TestMemoryLimitOfTheDriver(t *testing.T) {
	w := newWorld(t, goGuest(t))
	for _, limit := range []int64{1 << 16, 16 << 20} {
		code, err := w.prog.Start(context.Background(), DriverConfig{
			Args: []string{"guest", "big"}, MemoryLimit: limit, Env: &env{act: func(*Call, int32) {}},
		})
		if e, ok := errors.AsType[*MemoryError](err); !ok || e.Limit != limit || code == 0 {
			t.Errorf("a driver with %d bytes ended with %d, %v", limit, code, err)
		}
	}
}

func TestStackLimit(t *testing.T) {
	ctx := context.Background()
	check := func(t *testing.T, s *Slot, cfg TaskConfig, limit int64, function string) {
		t.Helper()
		e := fails[*StackError](t, ctx, s, cfg)
		if e == nil || e.Limit != limit || e.Use <= limit || e.Use > 200<<20 {
			t.Fatalf("%#v", e)
		}
		if function != "" && !strings.HasSuffix(e.Error(), ", mostly in "+function) {
			t.Errorf("%v, with %q", e, e.Stack)
		}
	}
	for _, test := range []struct {
		name          string
		limit, want   int64
		c, goFunction string
	}{
		{"small", 1 << 20, 1 << 20, "deep", "main.recurse"},
		{"default", 0, 16 << 20, "deep", "main.recurse"},
		{"wazero's", math.MaxInt64, 50_000_000, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			limit := func(o *Options) { o.StackLimit = test.limit }
			newWorld(t, cGuest(t), limit).inTask(func(s *Slot, cfg TaskConfig) {
				cfg.Args[1] = 5
				check(t, s, cfg, test.want, test.c)
				cfg.Args[1] = 12
				if e := fails[*Trap](t, ctx, s, cfg); e == nil || len(e.Stack) == 0 || e.Stack[0] != "wide" {
					t.Errorf("%#v", e)
				}
			})
			newWorld(t, goGuest(t), limit).inTask(func(s *Slot, cfg TaskConfig) {
				cfg.Args[2] = 5
				check(t, s, cfg, test.want, test.goFunction)
			}, "failing")
		})
	}
}

// killed runs a task that is killed while it does what it does.
func killed(t *testing.T, s *Slot, cfg TaskConfig, waitFor <-chan struct{}) {
	t.Helper()
	reason := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if waitFor != nil {
			<-waitFor
		} else {
			time.Sleep(20 * time.Millisecond)
		}
		cancel(reason)
	})
	if e := fails[*KilledError](t, ctx, s, cfg); e != nil && !errors.Is(e, reason) {
		t.Error(e)
	}
	wg.Wait()
}

func TestKill(t *testing.T) {
	blocks := make(chan struct{})
	t.Run("go", func(t *testing.T) {
		w := newWorld(t, goGuest(t))
		w.inTask(func(s *Slot, cfg TaskConfig) {
			for _, p := range []uint32{3, 13, 4} {
				cfg.Args[2] = p
				killed(t, s, cfg, nil)
			}
			cfg.Args[2] = 7
			cfg.Env = &env{block: blocks}
			killed(t, s, cfg, blocks)
			// A task whose context is done does not begin.
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			cfg.Args[2] = 1
			fails[*KilledError](t, ctx, s, cfg)
		}, "failing")
	})
	t.Run("c", func(t *testing.T) {
		w := newWorld(t, cGuest(t))
		w.inTask(func(s *Slot, cfg TaskConfig) {
			for _, id := range []uint32{4, 7} {
				cfg.Args[1] = id
				killed(t, s, cfg, nil)
			}
		})
	})
	t.Run("driver", func(t *testing.T) {
		w := newWorld(t, goGuest(t))
		for _, scenario := range []string{"blocked", "stdin", "spin"} {
			r, wr := pipe(t)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			_, err := w.prog.Start(ctx, DriverConfig{Args: []string{"guest", scenario}, Stdin: r, Env: &env{}})
			if _, ok := errors.AsType[*KilledError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", scenario, err)
			}
			cancel()
			wr.Close()
		}
	})
}

// While guests spin on every core, the host's own goroutines are never late by
// more than 100 ms, and neither is its garbage collector. This is a requirement
// of the engine's: heartbeats, time-outs and kills depend on it.
func TestHostStaysResponsiveWhileGuestsSpin(t *testing.T) {
	w := newWorld(t, goGuest(t))
	w.inTask(func(s *Slot, cfg TaskConfig) {
		cfg.Args[2] = 13
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range cores() {
			s := w.slot()
			wg.Go(func() { s.Run(ctx, cfg) })
		}
		// Other processes delay this one too, so one quiet stretch is enough: guests
		// that block the host do so all the time.
		best := time.Hour
		for range 10 {
			late := lateness(300 * time.Millisecond)
			t.Logf("latest tick: %v", late)
			if best = min(best, late); best <= 100*time.Millisecond {
				break
			}
		}
		cancel()
		wg.Wait()
		if best > 100*time.Millisecond {
			t.Errorf("a tick was late by %v", best)
		}
	}, "failing")
}

// wazero keeps a guest's stack in a field that is read by reflection. If a new
// version has it elsewhere, this test says so before anything else does.
func TestStackIsFoundInWazero(t *testing.T) {
	w := newWorld(t, cGuest(t))
	in, err := w.prog.newInstance(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	e, err := newEntry(in.mod, "quern_task_1")
	if err != nil {
		t.Fatal(err)
	}
	if n := e.stackLen(); n < 1<<10 || n > 1<<20 {
		t.Errorf("a new function has a stack of %d bytes", n)
	}
	if _, err := newEntry(in.mod, "nothing"); err == nil {
		t.Error("a function that is not exported was found")
	}
}
