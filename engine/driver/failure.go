package driver

import (
	"errors"
	"fmt"

	"github.com/quern-project/quern/internal/units"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// loadError tells the faults of a module from those of this machine.
func loadError(err error) error {
	var (
		module *sandbox.ModuleError
		limit  *sandbox.CompileLimitError
		full   *sandbox.DiskFullError
	)
	switch {
	case errors.As(err, &module):
		return &LoadError{Cause: module}
	case errors.As(err, &limit):
		setting := "quern.compile.cpu"
		if limit.Memory > 0 {
			setting = "quern.compile.memory"
		}
		return &LoadError{Cause: fmt.Errorf("%w; if it is neither, raise --conf %s", err, setting)}
	case errors.As(err, &full):
		return fmt.Errorf("%w: free space on it, or point quern.cache.dir to another one", err)
	}
	return err
}

// captureError says what became of the image of an action.
func captureError(err error) error {
	if limit := (*image.LimitError)(nil); errors.As(err, &limit) {
		return fmt.Errorf("out of memory: with this action, the images of the driver's memory would take %s, and the limit is %s: "+
			"keep less in the driver, drop RDDs that were shuffled, or raise it with --conf quern.driver.imageMemory=SIZE",
			units.Bytes(limit.Want), units.Bytes(limit.Limit))
	}
	return err
}

// driverError says what a fault of the driver module means to its author.
func driverError(err error) error {
	var (
		killed *sandbox.KilledError
		mem    *sandbox.MemoryError
		stack  *sandbox.StackError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &killed):
		return killed.Cause
	case errors.As(err, &mem):
		return fmt.Errorf("out of memory: the driver's memory is %s, wanted %s more, and the limit is %s: keep less in the driver, "+
			"or raise it with --conf quern.driver.memory=SIZE",
			units.Bytes(mem.Use), units.Bytes(mem.Want), units.Bytes(mem.Limit))
	case errors.As(err, &stack):
		return fmt.Errorf("the driver failed: %w: is there endless recursion? If not, raise --conf quern.task.stackSize=SIZE", stack)
	}
	return fmt.Errorf("the driver failed: %w", err)
}
