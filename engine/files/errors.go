package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// RefusedError is a path that no grant allows.
type RefusedError struct {
	Doing string // "reading" or "writing"
	Path  string // absolute
	Real  string // where Path leads by links, where that is why it is refused
	Flag  string // that would allow it
}

func (e *RefusedError) Error() string {
	if e.Real != "" {
		return fmt.Sprintf("%s %s is not allowed, because it leads to %s: add %s %s",
			e.Doing, e.Path, e.Real, e.Flag, argument(e.Real))
	}
	return fmt.Sprintf("%s %s is not allowed: add %s %s", e.Doing, e.Path, e.Flag, argument(e.Path))
}

// argument is a path as an argument on a command line.
func argument(path string) string {
	if strings.ContainsAny(path, " \t\n'\"\\$`*?[](){}<>|&;!#~") {
		return strconv.Quote(path)
	}
	return path
}

// Error is what the system answered to an operation on a path that is allowed.
type Error struct {
	Doing string // such as "reading" or "writing"
	Path  string // absolute
	Cause error
}

func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Doing, e.Path, e.reason()) }

func (e *Error) reason() string {
	switch {
	case errors.Is(e.Cause, fs.ErrNotExist):
		return "there is no such file or folder"
	case errors.Is(e.Cause, fs.ErrPermission):
		return "the system does not let this user do it (permission denied)"
	case errors.Is(e.Cause, syscall.ENOSPC):
		return "the disk is full: free some space, or use another disk"
	case errors.Is(e.Cause, syscall.EDQUOT):
		return "the user's share of the disk is full (disk quota exceeded)"
	case errors.Is(e.Cause, syscall.EMFILE), errors.Is(e.Cause, syscall.ENFILE):
		return "too many open files: raise the limit (ulimit -n)"
	}
	// The system's own word, without the path, which was said.
	cause := e.Cause
	if p, ok := errors.AsType[*fs.PathError](cause); ok {
		cause = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](cause); ok {
		cause = l.Err
	}
	return cause.Error()
}

// Explain explains a failure that only shows while a file is being read or
// written, such as a full disk, in the same words as the operations of Grants.
func Explain(doing, path string, cause error) error {
	return &Error{Doing: doing, Path: path, Cause: cause}
}

// explained says whether an error is one of this package's, with its own path.
func explained(err error) bool {
	_, ours := errors.AsType[*Error](err)
	_, refused := errors.AsType[*RefusedError](err)
	return ours || refused
}
