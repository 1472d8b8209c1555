package sandbox

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

func cores() int { return runtime.GOMAXPROCS(0) }

// lateness is by how much the latest of many ticks came too late, while the
// garbage is collected all the time.
func lateness(d time.Duration) (worst time.Duration) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	const interval = 2 * time.Millisecond
	for start := time.Now(); time.Since(start) < d; {
		before := time.Now()
		time.Sleep(interval)
		worst = max(worst, time.Since(before)-interval)
	}
	close(stop)
	wg.Wait()
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
