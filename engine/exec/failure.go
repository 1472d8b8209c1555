package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/shuffle"
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
	var (
		fetch    *shuffle.FetchError
		limit    *memory.LimitError
		pool     *memory.PoolError
		guest    *sandbox.MemoryError
		stack    *sandbox.StackError
		exit     *sandbox.ExitError
		trap     *sandbox.Trap
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
		f.Kind = msg.FailMemory
		f.Message = fmt.Sprintf("the call stack reached %d bytes and quern.task.stackSize allows %d: is there endless recursion? "+
			"If not, raise it", stack.Use, stack.Limit)
		f.Stack = strings.Join(stack.Stack, "\n")
	case t.failText != "":
		return t.userFailure(t.failCode)
	case errors.As(err, &exit):
		f.Kind = msg.FailUser
		f.Message, f.Stack = t.exited(exit)
	case errors.As(err, &trap):
		f.Kind, f.Stack = msg.FailUser, strings.Join(trap.Stack, "\n")
	case errors.As(err, &result), errors.As(err, &injected):
		f.Kind = msg.FailUser
	}
	return f
}

// guestMemory says which limit a guest's memory met.
func guestMemory(e *sandbox.MemoryError) string {
	if e.Cause != nil {
		return fmt.Sprintf("the task's memory is %d bytes and wanted %d more: %s", e.Use, e.Want, oneLine(e.Cause.Error()))
	}
	return fmt.Sprintf("the task's memory is %d bytes, wanted %d more, and the limit is %d: "+
		"make partitions smaller (more of them), or raise --task-memory (quern.task.memory)", e.Use, e.Want, e.Limit)
}

// userFailure reports what the guest itself said with task_fail, or that it
// said nothing. The first line is the message, the rest the guest's stack.
func (t *task) userFailure(code abi.Code) *msg.Failure {
	text, stack, _ := strings.Cut(t.failText, "\n")
	if text == "" {
		text = fmt.Sprintf("the task entry answered %d and gave no reason (see task_fail in docs/abi.md)", code)
	}
	return &msg.Failure{Kind: msg.FailUser, Message: text, Stack: strings.Trim(stack, "\n")}
}

// exited explains a task that ended its process. Go's fatal errors (deadlock,
// concurrent map writes) come this way: their text is on standard error.
func (t *task) exited(e *sandbox.ExitError) (message, stack string) {
	printed := strings.TrimSpace(t.stderr.String())
	if first, rest, _ := strings.Cut(printed, "\n"); strings.HasPrefix(first, "fatal error: ") || strings.HasPrefix(first, "panic: ") {
		return first, rest
	}
	message = fmt.Sprintf("the task ended its program with exit code %d (os.Exit, log.Fatal): return an error or panic instead", e.Code)
	return message, printed
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }
