package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/shuffle"
	"github.com/quern-project/quern/internal/units"
	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// classify makes the report of what went wrong. Several things may have: the
// one that explains the others wins. A task that was killed was killed, and a
// port that failed explains whatever the guest did then.
func (t *task) classify(err error) *msg.Failure {
	var killed *KilledError
	if cause := context.Cause(t.ctx); errors.As(cause, &killed) || errors.As(err, &killed) {
		return &msg.Failure{Kind: msg.FailKilled, Message: killed.Error()}
	}
	if t.hostErr != nil {
		err = t.hostErr
	}
	f := &msg.Failure{Kind: msg.FailIO, Message: oneLine(err.Error())}
	if t.last != nil {
		f.Stack = t.last.stack
	}
	var (
		fetch    *shuffle.FetchError
		limit    *memory.LimitError
		pool     *memory.PoolError
		guest    *sandbox.MemoryError
		stack    *sandbox.StackError
		exit     *sandbox.ExitError
		trap     *sandbox.Trap
		host     *sandbox.HostError
		result   *ResultTooLargeError
		injected *InjectedError
	)
	switch {
	case errors.As(err, &fetch):
		f.Kind, f.Fetch = msg.FailFetch, &fetch.FetchLost
	case errors.As(err, &guest):
		f.Kind, f.Message = msg.FailMemory, guestMemory(guest)
	case errors.As(err, &limit), errors.As(err, &pool):
		f.Kind = msg.FailMemory
	case errors.As(err, &stack):
		f.Kind, f.Message, f.Stack = msg.FailMemory, guestStack(stack), calls(stack.Stack)
	case errors.As(err, &host):
		f.Kind, f.Stack = msg.FailInternal, host.Stack
	case t.hostErr == nil && t.failText != "":
		return t.userFailure(t.failCode)
	case errors.As(err, &exit):
		f.Kind, f.Message = msg.FailUser, t.exited(exit)
	case errors.As(err, &trap):
		f.Kind, f.Stack = msg.FailUser, calls(trap.Stack)
	case errors.As(err, &result), errors.As(err, &injected), errors.Is(err, hostcall.ErrBadArgument):
		f.Kind = msg.FailUser
	}
	return f
}

// guestMemory says which limit a guest's memory met.
func guestMemory(e *sandbox.MemoryError) string {
	use := units.Bytes(e.Use)
	switch {
	case e.Cause != nil: // the pool's, with what to do
		return fmt.Sprintf("out of memory: the task's memory is %s and wanted %s more: %s",
			use, units.Bytes(e.Want), oneLine(e.Cause.Error()))
	case e.Want == 0:
		return fmt.Sprintf("out of memory: the driver's memory, of which each task has a copy, is %s, and the limit of a task is %s: "+
			"keep less in the driver, or raise --task-memory (quern.task.memory)", use, units.Bytes(e.Limit))
	}
	return fmt.Sprintf("out of memory: the task's memory is %s, wanted %s more, and the limit is %s: "+
		"make partitions smaller (more of them), or raise --task-memory (quern.task.memory)",
		use, units.Bytes(e.Want), units.Bytes(e.Limit))
}

// guestStack says which limit a guest's calls met.
func guestStack(e *sandbox.StackError) string {
	return e.Error() + ": is there endless recursion? If not, raise --conf quern.task.stackSize=SIZE"
}

// userFailure reports what the guest itself said with task_fail, or that it
// said nothing. The first line is the message, the rest the guest's stack.
func (t *task) userFailure(code abi.Code) *msg.Failure {
	text, stack, _ := strings.Cut(t.failText, "\n")
	if text == "" {
		text = fmt.Sprintf("the task entry answered %d and gave no reason (see task_fail in docs/abi.md)", code)
	}
	return &msg.Failure{Kind: msg.FailUser, Message: withHint(text), Stack: strings.Trim(stack, "\n")}
}

// exited explains a task that ended its process.
func (t *task) exited(e *sandbox.ExitError) string {
	if t.last != nil {
		return withHint(t.last.message)
	}
	message := fmt.Sprintf("the task ended its program with exit code %d (os.Exit, log.Fatal): panic instead", e.Code)
	if e.Code != 0 {
		if line := t.printed.lastLine(); line != "" { // log.Fatal says why
			message += fmt.Sprintf("; it printed last: %s", line)
		}
	}
	return withHint(message)
}

// withHint adds what to do to a message that ends with the error of a file
// which a program without files opens.
func withHint(message string) string {
	for _, badFile := range []string{"Bad file number", "Bad file descriptor"} { // Go's EBADF, and that of C
		if strings.HasSuffix(message, badFile) {
			return message + ": a job has no files: read with TextFile, write with SaveAsTextFile"
		}
	}
	return message
}

// oneLine joins the lines of a text.
func oneLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " | ")
}
