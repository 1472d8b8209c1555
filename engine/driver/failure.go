package driver

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

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
		return fmt.Errorf("out of memory: the driver's memory is %s, wanted %s more, and the limit is %s: keep less in the driver, "+
			"or raise it with --conf quern.driver.memory=SIZE",
			humanize.IBytes(uint64(mem.Use)), humanize.IBytes(uint64(mem.Want)), humanize.IBytes(uint64(mem.Limit)))
	case errors.As(err, &stack):
		return fmt.Errorf("the driver failed: %w: is there endless recursion? If not, raise --conf quern.task.stackSize=SIZE", stack)
	}
	return fmt.Errorf("the driver failed: %w", err)
}
