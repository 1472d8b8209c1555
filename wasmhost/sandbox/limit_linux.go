package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// limitsProcess says whether limitProcess does anything.
const limitsProcess = true

// limitProcess bounds this process. outOfTime is called when the processor time
// is used up; then the process exits. What goes beyond the memory makes the Go
// runtime end the process.
func limitProcess(cpu time.Duration, memory int64, outOfTime func()) error {
	over := make(chan os.Signal, 1)
	signal.Notify(over, unix.SIGXCPU)
	go func() {
		<-over
		outOfTime()
		os.Exit(1)
	}()
	seconds := uint64((cpu + time.Second - 1) / time.Second)
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds + 5}); err != nil {
		return err
	}
	// RLIMIT_AS would count the address space that the Go runtime reserves and
	// does not use. RLIMIT_DATA counts what is writable.
	now, err := writable()
	if err != nil {
		return err
	}
	limit := uint64(now + memory)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
}

// writable is what RLIMIT_DATA counts of this process, in bytes.
func writable() (int64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmData:"); ok {
			var kib int64
			_, err := fmt.Sscanf(rest, "%d kB", &kib)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmData in /proc/self/status")
}
