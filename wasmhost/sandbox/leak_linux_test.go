package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// holdings is what the process holds of things that can leak.
type holdings struct {
	files    int
	memfds   int   // mappings of images
	reserved int64 // address space in bytes
}

func held(t *testing.T) (h holdings) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h.files = len(files)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	h.memfds = strings.Count(string(maps), "memfd:quern-images")
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmSize:"); ok {
			fmt.Sscanf(rest, "%d", &h.reserved)
			h.reserved <<= 10
		}
	}
	return h
}

func TestNothingIsLeftBehind(t *testing.T) {
	wasm := goGuest(t)
	use := func() {
		// A world of its own, closed before the next.
		t.Run("", func(t *testing.T) {
			w := newWorld(t, wasm)
			w.inTask(func(s *Slot, cfg TaskConfig) {
				for _, p := range []uint32{0, 1, 2, 0, 8, 0} {
					cfg.Args[2] = p
					s.Run(context.Background(), cfg)
				}
			}, "failing")
			if _, err := w.prog.Start(context.Background(), DriverConfig{Args: []string{"guest", "exit3"}, Env: &env{}}); err != nil {
				t.Error(err)
			}
		})
	}
	use()
	before := held(t)
	const rounds = 5
	for range rounds {
		use()
	}
	// Machine code is unmapped by finalizers.
	var after holdings
	for range 100 {
		runtime.GC()
		if after = held(t); after.files <= before.files && after.memfds == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if after.files > before.files || after.memfds > 0 || after.reserved > before.reserved+2<<30 {
		t.Errorf("before %+v, after %d rounds %+v", before, rounds, after)
	}
}
