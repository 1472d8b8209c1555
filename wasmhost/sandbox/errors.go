package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/quern-project/quern/internal/units"
	"github.com/quern-project/quern/sdk/abi"
)

// Trap is the end of a run by an instruction that cannot be executed:
// unreachable, a division by zero, an access outside memory.
type Trap struct {
	Reason string   // such as "unreachable"
	Stack  []string // the guest's functions, innermost first; at most 30
}

func (e *Trap) Error() string {
	if len(e.Stack) == 0 {
		return "the guest trapped: " + e.Reason
	}
	return fmt.Sprintf("the guest trapped: %s in %s", e.Reason, e.Stack[0])
}

// ExitError is the end of a task by proc_exit, with whatever code. A driver that
// exits has no error.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("the task exited with code %d", e.Code) }

// KilledError is the end of a run whose context was done.
type KilledError struct{ Cause error } // context.Cause of it

func (e *KilledError) Error() string { return "killed: " + e.Cause.Error() }
func (e *KilledError) Unwrap() error { return e.Cause }

// MemoryError is the end of a run that died of a refused growth of its memory, or
// did not begin because its limit is below what it starts with.
type MemoryError struct {
	Limit int64 // in bytes
	Use   int64 // when it was refused
	Want  int64 // in addition; 0 if the limit is below what the guest begins with
	Cause error // why it was refused, if it was not the limit itself; or nil
	End   error // how the guest ended: a Trap, an ExitError, or nil
}

func (e *MemoryError) Error() string {
	use, limit := units.Bytes(e.Use), units.Bytes(e.Limit)
	if e.Want == 0 {
		return fmt.Sprintf("out of memory: the guest begins with %s, its limit is %s", use, limit)
	}
	s := fmt.Sprintf("out of memory: the guest uses %s and wanted %s more, its limit is %s",
		use, units.Bytes(e.Want), limit)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *MemoryError) Unwrap() []error {
	var errs []error
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	if e.End != nil {
		errs = append(errs, e.End)
	}
	return errs
}

// StackError is the end of a run whose calls were nested too deeply.
type StackError struct {
	Limit int64    // in bytes
	Use   int64    // in bytes
	Stack []string // the guest's functions, innermost first; at most 30
}

func (e *StackError) Error() string {
	s := fmt.Sprintf("stack overflow: the guest's calls take %s of stack, the limit is %s",
		units.Bytes(e.Use), units.Bytes(e.Limit))
	if f := mostFrequent(e.Stack); f != "" {
		s += ", mostly in " + f
	}
	return s
}

// mostFrequent is the function that recurs, rather than the one in which the
// stack happened to end.
func mostFrequent(stack []string) (name string) {
	count := make(map[string]int)
	for _, f := range stack {
		if count[f]++; count[f] > count[name] {
			name = f
		}
	}
	return name
}

// HostError is the end of a run by a panic in a host function: a fault of the
// host's, not of the guest's.
type HostError struct {
	Function string
	Value    any    // of the panic
	Stack    string // of the host
}

func (e *HostError) Error() string {
	return fmt.Sprintf("host function %s failed: %v", e.Function, e.Value)
}

func (e *HostError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// failure says why a run ended, given what wazero answered.
func (in *Instance) failure(err error) error {
	if err == nil {
		return nil
	}
	trace := guestStack(err.Error(), in.prog.compiled.Name(), in.prog.meta.Added)
	var s *stop
	if errors.As(err, &s) {
		if se, ok := s.err.(*StackError); ok {
			se.Stack = trace
		}
		return s.err
	}
	// What is known is not overwritten by what followed from it: a guest whose
	// context is done dies of all kinds of things.
	if in.run.Err() != nil {
		return &KilledError{Cause: context.Cause(in.run.Context)}
	}
	var end error
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 0 {
			return &ExitError{}
		}
		end = &ExitError{Code: int(exit.ExitCode())}
	} else if strings.HasPrefix(err.Error(), "stack overflow") {
		return &StackError{Limit: in.prog.host.opts.StackLimit, Use: in.entry.stackLen(), Stack: trace}
	} else {
		end = &Trap{Reason: reason(err.Error()), Stack: trace}
	}
	if r := in.mem.Refused(); r != nil {
		return &MemoryError{Limit: r.Limit, Use: r.Use, Want: r.Delta, Cause: r.Cause, End: end}
	}
	return end
}

// reason is the first line of wazero's text, without what it says of itself.
func reason(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimPrefix(line, "wasm error: ")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}

// frame is a line of wazero's stack, such as "module.name(i32,i64) i32". Names
// can hold brackets and blanks.
var frame = regexp.MustCompile(`^\t(.*?)\((?:` + valueTypes + `)?\)(?: \(?` + valueTypes + `\)?)?$`)

const (
	valueType  = `(?:[if](?:32|64)|v128|funcref|externref)`
	valueTypes = valueType + `(?:,` + valueType + `)*`
)

// guestStack finds the names of the functions of the named module in wazero's
// text.
func guestStack(text, module string, added int) (names []string) {
	_, lines, _ := strings.Cut(text, "\nwasm stack trace:\n")
	for line := range strings.SplitSeq(lines, "\n") {
		m := frame.FindStringSubmatch(line)
		if m == nil {
			break
		}
		if strings.HasPrefix(m[1], abi.Module+".") || strings.HasPrefix(m[1], abi.WASI+".") {
			continue
		}
		name := strings.TrimPrefix(m[1], module+".")
		if number, ok := strings.CutPrefix(name, "$"); ok {
			if n, err := strconv.Atoi(number); err == nil && n >= added {
				continue
			}
		}
		names = append(names, name)
	}
	return names
}
