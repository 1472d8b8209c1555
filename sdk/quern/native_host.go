//go:build !wasip1

package quern

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/quern-project/quern/sdk/abi"
)

// Outside a sandbox a job runs in this process: the functions that a module
// imports from the engine are answered by an evaluator, one task after the
// other, so that `go test` and a debugger work on a job. It keeps the engine's
// promises: equal partitions, stages and seeds, equal order of results, equal
// output folders, errors in the same words.
//
// What differs is what needs a sandbox. Tasks share the driver's memory, so a
// task's writes to captured variables are seen by all; nothing limits memory;
// a result's partition runs when it is asked for, not before.
//
// Host functions have no context among their arguments, so the process has one
// evaluator, and the settings of the latest NewContext hold. Calls from several
// goroutines are safe and wait for each other; one task runs at a time.

// native is the evaluator's place in the process.
var native struct {
	// calls is held by a driver call from beginning to end, running tasks
	// included. It guards evaluator.
	calls     sync.Mutex
	evaluator *evaluator // nil before the first context
	// task is the running one. Only the holder of calls sets it.
	task atomic.Pointer[nativeTask]
	// errors holds the text of each goroutine's last failed call until it is
	// read: goroutine number to string.
	errors sync.Map
}

// nativeError is an error with the code that the ABI answers for it.
type nativeError struct {
	code abi.Code
	text string
}

func (e *nativeError) Error() string { return e.text }

func badArgument(format string, args ...any) error {
	return &nativeError{abi.ErrBadArgument, fmt.Sprintf(format, args...)}
}

// answer is the ABI's form of a Go result.
func answer(n int64, err error) int64 {
	if err == nil {
		return n
	}
	native.errors.Store(goroutineID(), err.Error())
	var coded *nativeError
	if errors.As(err, &coded) {
		return int64(coded.code)
	}
	return int64(abi.ErrFailed)
}

// inDriver runs a driver call.
func inDriver(name string, call func(e *evaluator) (int64, error)) int64 {
	if t := registry.task.Load(); t != nil && t.owns(goroutineStack()) {
		// It would wait for itself.
		return answer(0, &nativeError{abi.ErrInTask, name + ": this call is for the driver, and this is a task: " +
			"a closure cannot use RDDs or the context; collect the data first and capture the result"})
	}
	native.calls.Lock()
	defer native.calls.Unlock()
	if native.evaluator == nil {
		native.evaluator = newEvaluator(runTask)
	}
	if native.evaluator.conf == nil && name != abi.FnContextOpen {
		return answer(0, fmt.Errorf("%s: there is no context yet: call NewContext first", name))
	}
	return answer(call(native.evaluator))
}

// inTask runs a task call on the running task, from whichever goroutine: a
// closure may read its input through a coroutine.
func inTask(name string, call func(t *nativeTask) (int64, error)) int64 {
	t := native.task.Load()
	if t == nil {
		return answer(0, &nativeError{abi.ErrInDriver, name + ": this call is for tasks, and this is the driver"})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return answer(call(t))
}

func hostContextOpen(d *abi.ContextDesc) int64 {
	return inDriver(abi.FnContextOpen, func(e *evaluator) (int64, error) { return 0, e.open(d) })
}

func hostConfGet(key string, buf []byte) int64 {
	return inDriver(abi.FnConfGet, func(e *evaluator) (int64, error) {
		value, ok := e.conf[key]
		if !ok {
			return 0, &nativeError{abi.ErrNotFound, "configuration: " + key + " is not set"}
		}
		return int64(fill(buf, value)), nil
	})
}

func hostRDDDefine(d *abi.RDDDesc) int64 {
	return inDriver(abi.FnRDDDefine, func(e *evaluator) (int64, error) {
		n, err := e.define(d)
		return int64(n), err
	})
}

func hostJobRun(d *abi.JobDesc) int64 {
	return inDriver(abi.FnJobRun, func(e *evaluator) (int64, error) {
		j, err := e.newJob(d)
		if err != nil {
			return 0, err
		}
		e.handles++
		e.jobs[e.handles] = j
		return e.handles, nil
	})
}

func hostJobNext(job int64, buf []byte) int64 {
	return inDriver(abi.FnJobNext, func(e *evaluator) (int64, error) {
		j := e.jobs[job]
		if j == nil {
			return 0, badArgument("job_next: there is no job %d", job)
		}
		n, err := j.nextResults(buf)
		return int64(n), err
	})
}

func hostJobClose(job int64) int64 {
	return inDriver(abi.FnJobClose, func(e *evaluator) (int64, error) {
		j := e.jobs[job]
		if j == nil {
			return 0, badArgument("job_close: there is no job %d", job)
		}
		delete(e.jobs, job)
		j.close()
		return 0, nil
	})
}

func hostTaskInfo(buf []byte) int64 {
	return inTask(abi.FnTaskInfo, func(t *nativeTask) (int64, error) {
		var all []byte
		for _, w := range t.info() {
			all = binary.LittleEndian.AppendUint64(all, w)
		}
		return int64(fill(buf, all)), nil
	})
}

func hostPortOpen(kind abi.PortKind, id uint32, partition int) int64 {
	return inTask(abi.FnPortOpen, func(t *nativeTask) (int64, error) { return t.open(kind, id, partition) })
}

func hostPortRead(port int64, buf []byte) int64 {
	return inTask(abi.FnPortRead, func(t *nativeTask) (int64, error) {
		n, err := t.read(port, buf)
		return int64(n), err
	})
}

func hostPortWrite(port int64, b []byte) int64 {
	return inTask(abi.FnPortWrite, func(t *nativeTask) (int64, error) { return 0, t.write(port, b) })
}

func hostPortClose(port int64) int64 {
	return inTask(abi.FnPortClose, func(t *nativeTask) (int64, error) { return 0, t.close(port) })
}

func hostTaskFail(code abi.Code, text string) int64 {
	return inTask(abi.FnTaskFail, func(t *nativeTask) (int64, error) {
		t.fail(text)
		return 0, nil
	})
}

// hostLastError answers the text for the calling goroutine, until it was read.
func hostLastError(buf []byte) int64 {
	id := goroutineID()
	text, _ := native.errors.Load(id)
	s, _ := text.(string)
	n := fill(buf, s)
	if n <= len(buf) {
		native.errors.Delete(id)
	}
	return int64(n)
}

func hostLog(level int, text string) int64 {
	to := slog.LevelInfo
	switch level {
	case abi.LogDebug:
		to = slog.LevelDebug
	case abi.LogWarn:
		to = slog.LevelWarn
	case abi.LogError:
		to = slog.LevelError
	}
	slog.Log(context.Background(), to, text)
	return 0
}

// fill copies what fits of s to buf, and answers the whole length.
func fill[S ~string | ~[]byte](buf []byte, s S) int {
	copy(buf, s)
	return len(s)
}
