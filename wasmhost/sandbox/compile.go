package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// ModuleError says why a module cannot be run. It is the module's fault.
type ModuleError struct{ Reason error }

func (e *ModuleError) Error() string { return e.Reason.Error() }
func (e *ModuleError) Unwrap() error { return e.Reason }

// CompileLimitError says that compiling a module took too much.
type CompileLimitError struct {
	CPU    time.Duration // the limit that was reached, or 0
	Memory int64         // the limit that was reached in bytes, or 0
}

func (e *CompileLimitError) Error() string {
	if e.Memory > 0 {
		return fmt.Sprintf("compiling the module took more than %s of memory: it is too large or made to be expensive",
			humanize.IBytes(uint64(e.Memory)))
	}
	return fmt.Sprintf("compiling the module took more than %s of processor time: it is too large or made to be expensive",
		e.CPU)
}

// workers is how many functions are compiled at a time. More take more memory.
const workers = 2

// compile is the one place where machine code is made.
func compile(ctx context.Context, r wazero.Runtime, wasm []byte) (_ wazero.CompiledModule, err error) {
	defer func() {
		// A compiler that fails on an input it should have refused must not take
		// the process with it.
		if p := recover(); p != nil {
			err = &ModuleError{fmt.Errorf("the module cannot be compiled: %v", p)}
		}
	}()
	c, err := r.CompileModule(experimental.WithCompilationWorkers(ctx, workers), wasm)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &ModuleError{fmt.Errorf("the module is not valid: %w", err)}
	}
	return c, nil
}

func (h *Host) loadEntry(ctx context.Context, wasm []byte) (*Program, error) {
	return nil, errors.New("not yet")
}
