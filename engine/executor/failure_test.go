package executor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/puppet"
	"github.com/quern-project/quern/sdk/abi"
)

// failWith reports why the task fails, as an SDK does, and returns the code.
func failWith(g *puppet.Guest, code abi.Code, text string) int64 {
	p, n := g.Put([]byte(text))
	g.Call(puppet.TaskFail, uint32(code), p, n)
	return int64(code)
}

func TestEveryEndOfAGuestHasItsMessage(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name    string
		script  script
		message string
		stack   string // a part of it
	}{
		{"a panic that the SDK explains",
			func(g *puppet.Guest) int64 {
				return failWith(g, abi.ErrPanic, "map at main.go:9: panic: boom\nmain.f(...)\n\tmain.go:10\n")
			},
			"map at main.go:9: panic: boom", "main.f(...)\n\tmain.go:10"},
		{"a panic over a file",
			func(g *puppet.Guest) int64 {
				return failWith(g, abi.ErrPanic, "map at main.go:9: panic: open a.txt: Bad file number\nmain.f(...)\n")
			},
			"map at main.go:9: panic: open a.txt: Bad file number: a job has no files: read with TextFile, write with SaveAsTextFile", "main.f(...)"},
		{"an exit over a file",
			func(g *puppet.Guest) int64 { g.Print(2, "cannot open: Bad file descriptor\n"); g.Exit(1); return 0 },
			"the task ended its program with exit code 1 (os.Exit, log.Fatal): panic instead; " +
				"it printed last: cannot open: Bad file descriptor: a job has no files: read with TextFile, write with SaveAsTextFile", ""},
		{"only the first reason counts",
			func(g *puppet.Guest) int64 {
				failWith(g, abi.ErrUser, "the first")
				return failWith(g, abi.ErrUser, "the second")
			},
			"the first", ""},
		{"a reason makes a failure, whatever the entry answers",
			func(g *puppet.Guest) int64 { failWith(g, abi.ErrUser, "no"); return 0 },
			"no", ""},
		{"a code without a reason",
			func(*puppet.Guest) int64 { return int64(abi.ErrUser) },
			"the task entry answered -8 and gave no reason (see task_fail in docs/abi.md)", ""},
		{"a trap",
			func(g *puppet.Guest) int64 { g.Trap(); return 0 },
			"the guest trapped: unreachable in obey", "obey\nquern_task_1"},
		{"an exit",
			func(g *puppet.Guest) int64 { g.Exit(0); return 0 },
			"the task ended its program with exit code 0 (os.Exit, log.Fatal): panic instead", ""},
		{"an exit with words",
			func(g *puppet.Guest) int64 { g.Print(2, "first\n10:00 cannot open it\n\n"); g.Exit(1); return 0 },
			"the task ended its program with exit code 1 (os.Exit, log.Fatal): panic instead; " +
				"it printed last: 10:00 cannot open it", ""},
		{"a death of Go's runtime",
			func(g *puppet.Guest) int64 {
				g.Print(2, "hello\nfatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.f()\n\t/x/main.go:3 +0x4\n")
				g.Exit(2)
				return 0
			},
			"fatal error: all goroutines are asleep - deadlock!", "main.f()\n\t/x/main.go:3 +0x4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			f := w.fails(w.run(result(), c.script), msg.FailUser, c.message)
			if !strings.Contains(f.Stack, c.stack) {
				t.Errorf("the stack is %q, want %q in it", f.Stack, c.stack)
			}
			w.finishes(w.run(result(), nothing))
		})
	}
}

func TestATaskOverItsMemoryLimitFailsAndOthersGoOn(t *testing.T) {
	w := newWorld(t)
	ended := make(chan bool)
	w.launch(result(),
		func(g *puppet.Guest) int64 {
			for g.Grow(16) >= 0 { // 1 MiB at a time
			}
			close(ended)
			g.Trap() // as an allocator that got nothing
			return 0
		},
		func(g *puppet.Guest) int64 { <-ended; return int64(g.Grow(16)) / 1000 })
	all := w.ended(2)
	w.fails(all[0], msg.FailMemory, "out of memory: the task's memory is 15 MiB, wanted 1.0 MiB more, and the limit is 16 MiB: "+
		"make partitions smaller (more of them), or raise --task-memory (quern.task.memory)")
	w.finishes(all[1])
	if used := w.executor.pool.Used(); used != 0 {
		t.Errorf("%d bytes of the pool are still in use", used)
	}
}

func TestATaskOverItsShareOfTheExecutorsMemoryFails(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Memory = 4 << 20 })
	u := w.run(result(), func(g *puppet.Guest) int64 {
		for g.Grow(16) >= 0 {
		}
		g.Trap()
		return 0
	})
	w.fails(u, msg.FailMemory, "out of memory: the task's memory is 4.1 MiB and wanted 1.0 MiB more: task 0: over its share of the "+
		"executor's memory (4.0 MiB, shared by 1 running tasks): it uses 4.0 MiB and needs another 1.0 MiB: raise --executor-memory (quern.executor.memory), "+
		"run fewer tasks at a time, or use more partitions")
	w.finishes(w.run(result(), nothing))
}

func TestARefusedGrowthThatTheGuestSurvivesIsNoFailure(t *testing.T) {
	w := newWorld(t)
	w.finishes(w.run(result(), func(g *puppet.Guest) int64 { return int64(g.Grow(1<<12)) + 1 }))
}

func TestATaskWhoseImageIsAboveTheLimitSaysSo(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.TaskMemory = 64 << 10 })
	w.fails(w.run(result(), nothing), msg.FailMemory, "out of memory: the driver's memory, of which each task has a copy, is 128 KiB, "+
		"and the limit of a task is 64 KiB: keep less in the driver, or raise --task-memory (quern.task.memory)")
}

func TestEndlessRecursionFails(t *testing.T) {
	w := newWorld(t)
	u := w.run(result(), func(g *puppet.Guest) int64 { g.Recurse(); return 0 })
	// How far it gets until the next safepoint is the compiler's.
	if u.Failure == nil {
		t.Fatalf("%+v", u)
	}
	before, after, _ := strings.Cut(u.Failure.Message, " take ")
	_, after, _ = strings.Cut(after, " of stack")
	w.fails(u, msg.FailMemory, u.Failure.Message)
	if got := before + after; got != "stack overflow: the guest's calls, the limit is 1.0 MiB, mostly in recurse: is there endless recursion? "+
		"If not, raise --conf quern.task.stackSize=SIZE" {
		t.Errorf("the message is %q", u.Failure.Message)
	}
	if !strings.HasPrefix(u.Failure.Stack, "recurse (") || !strings.HasSuffix(u.Failure.Stack, " times)") {
		t.Errorf("the stack is %q", u.Failure.Stack)
	}
	w.finishes(w.run(result(), nothing))
}

func TestAnImageThatIsGoneFailsTheTask(t *testing.T) {
	w := newWorld(t)
	s := result()
	s.Image = 2
	w.fails(w.run(s, nothing), msg.FailIO, "image 2 is gone: its job has ended")
}

func TestCrashReportsOfGoPrograms(t *testing.T) {
	const trace = "goroutine 1 gp=0x2821c0 m=0 mp=0x185460 [running]:\n" +
		"runtime.throw({0x96be, 0xd})\n\t/go/src/runtime/panic.go:1243 +0x3 fp=0x2e14c0 sp=0x2e1498 pc=0x15120003\n" +
		"main.init.func4(0x2)\n\t/job/main.go:73 +0xa fp=0x2e1690 sp=0x2e15d8 pc=0x181e000a\n" +
		goSDK + "mapElements[...].func1.1.1()\n\t/sdk/rdd.go:162 +0x4 fp=0x2e16c8 sp=0x2e16a8 pc=0x18430004\n" +
		goSDK + "runTask(0x0, 0x1, 0x1)\n\t/sdk/task.go:112 +0x21\n" +
		"main.main()\n\t/job/main.go:9 +0x3\n" +
		"\ngoroutine 2 [force gc (idle)]:\nmain.other()\n\t/job/main.go:1\n"
	for _, c := range []struct {
		name, printed, own string
		last               *crashReport
	}{
		{"nothing", "", "", nil},
		{"no report", "a\nb\n", "a\nb\n", nil},
		{"an error of the user's that looks like one", "fatal error: no\npanic: no\n", "fatal error: no\npanic: no\n", nil},
		{"a trace that the user prints", "goroutine 1 [running]:\n", "goroutine 1 [running]:\n", nil},
		{"out of memory",
			"one\nruntime: out of memory: cannot allocate\nfatal error: out of memory\n\n" + trace, "one\n",
			&crashReport{"fatal error: out of memory", "main.init.func4(0x2)\n\t/job/main.go:73 +0xa"}},
		{"a panic of two lines",
			"panic: a\n\tb\n\n" + trace, "",
			&crashReport{"panic: a | b", "main.init.func4(0x2)\n\t/job/main.go:73 +0xa"}},
		{"the last of several",
			"panic: mine\nfatal error: x\n\n" + trace, "panic: mine\n",
			&crashReport{"fatal error: x", "main.init.func4(0x2)\n\t/job/main.go:73 +0xa"}},
		{"a signal",
			"panic: runtime error: nil\n[signal 0xb]\n\ngoroutine 5 [running]:\nmain.f()\n\t/job/main.go:4\ncreated by main.g in goroutine 1\n\t/job/main.go:2\n", "",
			&crashReport{"panic: runtime error: nil | [signal 0xb]", "main.f()\n\t/job/main.go:4\ncreated by main.g in goroutine 1\n\t/job/main.go:2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			own, last := splitCrashReport(c.printed)
			if diff := cmp.Diff(c.own, own); diff != "" {
				t.Errorf("what the task printed itself (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.last, last, cmp.AllowUnexported(crashReport{})); diff != "" {
				t.Errorf("the crash report (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCrashReport looks for crash reports in whatever a task prints.
func FuzzCrashReport(f *testing.F) {
	for _, s := range []string{
		"", "fatal error: x\ngoroutine 1 []:", "panic: \n\n\ngoroutine ]:\na\nb\nc", "runtime: a\nfatal error: b\n\ngoroutine 1 [x]:\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		own, last := splitCrashReport(printed)
		switch {
		case last == nil && own != printed, !strings.HasPrefix(printed, own):
			t.Fatalf("%q became %q and %+v", printed, own, last)
		case last != nil && (last.message == "" || strings.Contains(last.message, "\n")):
			t.Fatalf("the message of %q is %q", printed, last.message)
		}
	})
}

func TestCallsOfRecursionTakeOneLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"a", "a"}, {"a a a b", "a (3 times)\nb"}, {"a b a", "a\nb\na"},
	} {
		if got := calls(strings.Fields(c.in)); got != c.want {
			t.Errorf("calls(%s) is %q, want %q", c.in, got, c.want)
		}
	}
}

func TestPrintedKeepsTheBeginningAndTheEnd(t *testing.T) {
	for _, lines := range []int{1, 100, 1000, 5000} {
		for _, at := range []int{1, 7, 100000} { // lines written at once
			var p printed
			var all []string
			for i := range lines {
				all = append(all, fmt.Sprintf("line %030d\n", i))
			}
			for rest := all; len(rest) > 0; {
				n := min(at, len(rest))
				if k, err := p.Write([]byte(strings.Join(rest[:n], ""))); err != nil || k != len(strings.Join(rest[:n], "")) {
					t.Fatalf("Write answers %d, %v", k, err)
				}
				rest = rest[n:]
			}
			whole, got := strings.Join(all, ""), p.String()
			if len(whole) <= headBytes+tailBytes && got != whole {
				t.Fatalf("%d lines, %d at once: something is missing", lines, at)
			}
			if !strings.HasPrefix(got, whole[:min(len(whole), headBytes)]) || !strings.HasSuffix(got, whole[max(0, len(whole)-tailBytes):]) {
				t.Fatalf("%d lines, %d at once: the beginning or the end is missing", lines, at)
			}
			if len(got) > headBytes+2*tailBytes+100 || len(p.head)+cap(p.tail) > 1<<18 {
				t.Fatalf("%d lines, %d at once: %d bytes are kept", lines, at, len(got))
			}
			if got := p.lastLine(); got != strings.TrimSpace(all[lines-1]) {
				t.Fatalf("the last line is %q", got)
			}
		}
	}
}
