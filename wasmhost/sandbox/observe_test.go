package sandbox

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func cores() int { return runtime.GOMAXPROCS(0) }

// lateness is by how much the latest of many ticks came too late.
func lateness(d time.Duration) (worst time.Duration) {
	const interval = 2 * time.Millisecond
	for start := time.Now(); time.Since(start) < d; {
		before := time.Now()
		time.Sleep(interval)
		worst = max(worst, time.Since(before)-interval)
		before = time.Now()
		runtime.GC()
		worst = max(worst, time.Since(before)-interval)
	}
	return worst
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, w
}
