package conf

import (
	"fmt"
	"strings"
)

// Errors is every problem that was found in a set of settings, never empty.
type Errors []error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As access to each problem.
func (e Errors) Unwrap() []error { return e }

// UnknownKeyError is a setting for a key that does not exist.
type UnknownKeyError struct {
	Setting Setting
	// Nearest is the key that was most likely meant, "" if none is near.
	Nearest string
}

func (e *UnknownKeyError) Error() string {
	s := fmt.Sprintf("configuration: unknown key %s (from %s)", e.Setting.Key, e.Setting.place())
	if e.Nearest == "" {
		return s + "; docs/configuration.md lists the keys"
	}
	if e.Setting.Source == FromEnvironment {
		return fmt.Sprintf("%s; did you mean %s?", s, EnvironmentName(e.Nearest))
	}
	return fmt.Sprintf("%s; did you mean %s?", s, e.Nearest)
}

// ValueError is a value that its key does not take.
type ValueError struct {
	Setting Setting
	Cause   error
	Allowed string // what the key takes
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("configuration: %s = %q (from %s): %v; allowed is %s",
		e.Setting.Key, e.Setting.Value, e.Setting.place(), e.Cause, e.Allowed)
}

func (e *ValueError) Unwrap() error { return e.Cause }

// LaunchOnlyError is a job's setting of a key that only whoever launches the
// job decides.
type LaunchOnlyError struct{ Setting Setting }

func (e *LaunchOnlyError) Error() string {
	return fmt.Sprintf("configuration: %s cannot be set by the job; set it at launch, as in --conf %s=%s",
		e.Setting.Key, e.Setting.Key, e.Setting.Value)
}

// CappedError is a job's request for more than whoever launches it allows.
type CappedError struct {
	Setting Setting
	Limit   string // the value of the launch
}

func (e *CappedError) Error() string {
	return fmt.Sprintf("configuration: %s = %q (from the job): the limit decided at launch is %s, a job can only lower it; "+
		"allow more with --conf %s=%s", e.Setting.Key, e.Setting.Value, e.Limit, e.Setting.Key, e.Setting.Value)
}
