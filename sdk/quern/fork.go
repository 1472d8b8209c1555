package quern

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
)

// forks says whether tasks run in copies of the driver's memory. On the native
// platform they run in the driver's process.
const forks = runtime.GOOS == "wasip1"

// checkDriver refuses what belongs to the driver when it is called inside a
// task. A clone has the driver's other goroutines, too, but they must not act
// there: one that gets here is parked for good.
func checkDriver(op, site string) error {
	t := registry.task.Load()
	switch {
	case t == nil:
		return nil
	case forks:
		parkDrivers()
	case !t.owns(goroutineStack()):
		return nil // a goroutine of the driver beside the task
	}
	return fmt.Errorf("%s at %s: %w: transformations and actions belong to the driver. "+
		"Run the action before, keep its result in a variable, and use the variable in the closure", op, site, ErrInTask)
}

// goroutineStack is the calling goroutine's stack as text. It is slow, and used
// only where something is wrong or about to be slow anyway.
func goroutineStack() []byte {
	for size := 16 << 10; ; size *= 2 { // its last line says who started it
		buf := make([]byte, size)
		if n := runtime.Stack(buf, false); n < size {
			return buf[:n]
		}
	}
}

// goroutineID is the calling goroutine's number.
func goroutineID() uint64 {
	var buf [64]byte
	return leadingID(buf[:runtime.Stack(buf[:], false)])
}

// leadingID reads the number from a stack's first line, "goroutine 7 [running]:",
// or from its last, "created by main.f in goroutine 7".
func leadingID(stack []byte) uint64 {
	_, rest, _ := bytes.Cut(stack, []byte("goroutine "))
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	id, _ := strconv.ParseUint(string(rest[:digits]), 10, 64)
	return id
}

// owns says whether a goroutine, given by its stack, is the task's own or was
// started by it, directly or not. A parent that has ended ends the search.
func (t *task) owns(stack []byte) bool {
	all := map[uint64][]byte{}
	for range 100 {
		if leadingID(stack) == t.goroutine {
			return true
		}
		_, rest, ok := bytes.Cut(stack, []byte("\ncreated by "))
		if !ok {
			return false
		}
		_, rest, _ = bytes.Cut(rest, []byte(" in "))
		parent := leadingID(rest)
		if parent == t.goroutine {
			return true
		}
		if len(all) == 0 {
			for _, s := range bytes.Split(allStacks(), []byte("\n\n")) {
				all[leadingID(s)] = s
			}
		}
		if stack = all[parent]; stack == nil {
			return false
		}
	}
	return false
}

func allStacks() []byte {
	for size := 256 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return buf[:n]
		}
	}
}
