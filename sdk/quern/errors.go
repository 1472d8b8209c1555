package quern

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quern-project/quern/sdk/abi"
)

// ErrEmpty is what an action that needs an element returns (wrapped) for an
// RDD without any.
var ErrEmpty = errors.New("empty RDD")

// ErrInTask is returned (wrapped) when a closure calls what belongs to the
// driver: a transformation or an action.
var ErrInTask = errors.New("driver call inside a task")

// ErrCancelled is what an action returns (wrapped) when its job was cancelled.
var ErrCancelled = errors.New("job cancelled")

// JobError says why an action failed.
type JobError struct {
	Action   string // such as "count"
	CallSite string // file:line of the action
	Code     abi.Code
	// Text is the engine's account: which RDD, partition and attempt, the cause,
	// and for a panic the stack of the closure.
	Text string
}

func (e *JobError) Error() string {
	if strings.Contains(e.Text, e.CallSite) {
		return e.Text
	}
	return fmt.Sprintf("%s at %s: %s", e.Action, e.CallSite, e.Text)
}

// Unwrap makes errors.Is(err, ErrCancelled) work.
func (e *JobError) Unwrap() error {
	if e.Code == abi.ErrCancelled {
		return ErrCancelled
	}
	return nil
}

// lastError is the host's text for its last negative result.
func lastError(code int64) string {
	buf := make([]byte, 4<<10)
	n := hostLastError(buf)
	if n > int64(len(buf)) {
		buf = make([]byte, n)
		n = hostLastError(buf)
	}
	if n <= 0 {
		return fmt.Sprintf("the engine answered %d without a reason", code)
	}
	return string(buf[:min(n, int64(len(buf)))])
}
