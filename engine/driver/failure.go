package driver

import (
	"errors"
	"fmt"

	"github.com/quern-project/quern/wasmhost/sandbox"
)

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
		return fmt.Errorf("the driver's memory is %d bytes, wanted %d more, and the limit is %d: keep less in the driver, "+
			"or raise it with --conf quern.driver.memory=SIZE", mem.Use, mem.Want, mem.Limit)
	case errors.As(err, &stack):
		return fmt.Errorf("the driver's call stack reached %d bytes and quern.task.stackSize allows %d: is there endless recursion? "+
			"If not, raise it", stack.Use, stack.Limit)
	}
	return fmt.Errorf("the driver failed: %w", err)
}
