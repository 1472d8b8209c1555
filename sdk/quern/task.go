package quern

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/quern-project/quern/sdk/abi"
)

// TaskContext says which task a closure runs in.
type TaskContext struct {
	Job          int // ordinal of the job in the application, from 0
	Stage        int
	StageAttempt int // 0 for the first
	Partition    int
	Attempt      int // of this partition, 0 for the first, which messages call attempt 1
	// Seed is the same for every attempt at this partition of this job's stage.
	// math/rand's top-level functions are seeded with it already.
	Seed uint64
}

// CurrentTask returns the context of the task that runs; false in the driver.
func CurrentTask() (TaskContext, bool) {
	if t := registry.task.Load(); t != nil {
		return t.TaskContext, true
	}
	return TaskContext{}, false
}

// task is the task that runs in this memory.
type task struct {
	TaskContext
	kind      abi.TaskKind
	id        uint32
	goroutine uint64 // native only
	rdd       *node  // whose partition is computed
	reader    *node  // of the shuffle that is written, or nil: its functions run here, too
	name      string // for people: what it is done for, and where
	site      string
	failure   *taskFailure
}

// taskFailure travels as a panic from where the SDK finds that a task cannot go
// on to runTask.
type taskFailure struct {
	code  abi.Code
	text  string
	place string // the operation whose fault it is; "" if it is the task's
}

func (f *taskFailure) Error() string { return f.text }

// fail ends the running task. It notes the failure, too, so that a closure that
// recovers from every panic cannot turn it into a success.
func fail(code abi.Code, text string) { failAt("", code, text) }

// failAt is fail with the operation whose fault it is.
func failAt(place string, code abi.Code, text string) {
	f := &taskFailure{code, text, place}
	if t := registry.task.Load(); t != nil && t.failure == nil {
		t.failure = f
	}
	panic(f)
}

// check fails the task if a host function's result is negative. The two strings
// say what was being done to what.
func check(result int64, doing, what string) int64 {
	if result < 0 {
		fail(abi.Code(result), doing+" "+what+": "+lastError(result))
	}
	return result
}

// runTask computes one partition: the host calls it in a copy of the driver's
// memory.
func runTask(kind abi.TaskKind, id uint32, partition uint32) (result int64) {
	t := &task{kind: kind, id: id}
	t.Partition = int(partition)
	finished := false
	defer func() {
		if finished {
			registry.task.Store(nil)
			return
		}
		p := recover()
		failure := t.explain(p)
		registry.task.Store(nil)
		hostTaskFail(failure.code, failure.text)
		if p == nil && forks {
			// runtime.Goexit would go on and run the deferred calls of the driver
			// below this frame. This copy of it has no future.
			os.Exit(1)
		}
		result = int64(failure.code)
	}()

	var run func()
	switch kind {
	case abi.TaskResult:
		if a := findAction(id); a != nil {
			t.rdd, t.name, t.site = a.rdd, a.name, a.site
			run = func() { a.task(int(partition)) }
		}
	case abi.TaskShuffle:
		if s := findShuffle(id); s != nil {
			t.rdd, t.name, t.site, t.reader = s.parent, s.parent.name, s.parent.site, s.reader
			run = func() { s.write(int(partition)) }
		}
	}
	t.start()
	if run == nil {
		fail(abi.ErrBadArgument, fmt.Sprintf("the driver's image has no action or shuffle %d (kind %d)", id, kind))
	}
	run()
	if t.failure != nil {
		panic(t.failure)
	}
	finished = true
	return 0
}

// start learns what the task is and makes it the running one.
func (t *task) start() {
	if !forks {
		t.goroutine = goroutineID()
	}
	registry.task.Store(t)
	var info [abi.TaskInfoWords * 8]byte
	check(hostTaskInfo(info[:]), "asking for", "the task's description")
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(info[8*i:]) }
	t.Job, t.Stage, t.StageAttempt = int(word(abi.InfoJob)), int(word(abi.InfoStage)), int(word(abi.InfoStageAttempt))
	t.Attempt, t.Seed = int(word(abi.InfoAttempt)), word(abi.InfoSeed)
	reseedRandom(t.Seed)
	if forks {
		limitHeap(word(abi.InfoMemory))
	}
}

// explain makes the text of a failure out of what recover returned; nil stands
// for runtime.Goexit, or for panic(nil) of old.
func (t *task) explain(p any) *taskFailure {
	if t.failure != nil {
		return t.failure.in(t)
	}
	if f, ok := p.(*taskFailure); ok {
		return f.in(t)
	}
	what := "a closure called runtime.Goexit (t.FailNow and t.Fatal do, too): panic instead"
	if p != nil {
		what = "panic: " + panicText(p)
	}
	// The first line is the message; the rest is the stack.
	return &taskFailure{code: abi.ErrPanic, text: t.culprit() + ": " + oneLine(what) + "\n" + trimStack(string(debug.Stack()))}
}

// in adds to a failure where it happened.
func (f *taskFailure) in(t *task) *taskFailure {
	switch {
	case f.place != "":
		return &taskFailure{code: f.code, text: f.place + ": " + f.text}
	case t.name == "":
		return f
	}
	return &taskFailure{code: f.code, text: t.name + " at " + t.site + ": " + f.text}
}

func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return fmt.Sprintf("%v", p)
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", " | ") }

// culprit names the RDD whose closure is the innermost on the stack, which is
// the task's own RDD, one that it is computed from without a shuffle, or the one
// that reads the shuffle which the task writes. What a
// closure contains, such as an iterator that it has returned, is part of it.
func (t *task) culprit() string {
	if t.rdd == nil {
		return "task"
	}
	byEntry, byName := map[uintptr]*node{}, map[string]*node{}
	var visit func(n *node)
	seen := map[*node]bool{}
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, e := range n.entries {
			if byEntry[e] == nil {
				byEntry[e] = n
			}
			if f := runtime.FuncForPC(e); f != nil && byName[f.Name()] == nil {
				byName[f.Name()] = n
			}
		}
		for _, p := range n.parents {
			visit(p)
		}
	}
	visit(t.rdd)
	if t.reader != nil {
		visit(t.reader)
	}
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for {
		f, more := frames.Next()
		if n := byEntry[f.Entry]; n != nil && f.Entry != 0 {
			return n.name + " at " + n.site
		}
		for inner := f.Function; ; {
			outer, ok := enclosing(inner)
			if !ok {
				break
			}
			if n := byName[outer]; n != nil {
				return n.name + " at " + n.site
			}
			inner = outer
		}
		if !more {
			return t.name + " at " + t.site
		}
	}
}

// enclosing is the name of the function in which a function literal or the body of
// a range over a function stands: "p.f" of "p.f.func1", "p.f.1" or "p.f-range1".
func enclosing(function string) (outer string, ok bool) {
	i := strings.LastIndexAny(function, ".-")
	if i < 0 {
		return "", false
	}
	number := strings.TrimPrefix(strings.TrimPrefix(function[i+1:], "func"), "range")
	return function[:i], number != "" && strings.Trim(number, "0123456789") == ""
}

// trimStack keeps what a user can use of a stack: the frames of the closures,
// without the runtime's, the SDK's and those of the driver below the task.
func trimStack(stack string) string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	var kept []string
	if len(lines) > 0 {
		lines = lines[1:] // "goroutine 1 [running]:"
	}
	for i := 0; i+1 < len(lines); i += 2 {
		function, place := lines[i], lines[i+1]
		if strings.HasPrefix(function, sdkPrefix+"runTask(") {
			break
		}
		test := strings.Contains(place, "_test.go:")
		if strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "runtime/debug.") ||
			strings.HasPrefix(function, "panic(") || strings.HasPrefix(function, sdkPrefix) && !test {
			continue
		}
		kept = append(kept, function, place)
	}
	return strings.Join(kept, "\n")
}
