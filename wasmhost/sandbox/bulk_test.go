package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"
)

// filling is a job with that many pages of memory, which is also their maximum. Its
// task fills memory (where, with what, how much) and answers the last byte of it.
func filling(pages uint64) []byte {
	size := binary.AppendUvarint(nil, pages)
	return bytes.Join([][]byte{
		{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, []byte{3, 0x60, 0, 0, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7e, 0x60, 1, 0x7f, 1, 0x7e}),
		section(2, []byte{2}, name("quern"), name("yield"), []byte{0, 0}, name("quern"), name("act"), []byte{0, 2}),
		section(3, []byte{2, 0, 1}),
		section(5, []byte{1, 1}, size, size),
		section(7, []byte{3}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 2}, name("quern_task_1"), []byte{0, 3}),
		section(10, []byte{2},
			body(0x41, 0, 0x10, 1, 0x1a),
			body(0x20, 0, 0x20, 1, 0x20, 2, 0xfc, 0x0b, 0, // memory.fill
				0x20, 0, 0x20, 2, 0x6a, 0x41, 1, 0x6b, 0x31, 0, 0)), // i64.load8_u
	}, nil)
}

// A memory.fill of fresh memory takes long, because of the page faults. Meanwhile
// the host stays responsive, and the task can be killed.
func TestHostStaysResponsiveWhileGuestsFillMemory(t *testing.T) {
	const size = 512 << 20
	w := newWorld(t, filling(size>>16))
	w.inTask(func(s *Slot, cfg TaskConfig) {
		cfg.Args = [3]uint32{0, 7, size}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				if ret, u, err := s.Run(ctx, cfg); err == nil && (ret != 7 || u.Safepoints < 100) {
					t.Errorf("the task answered %d and was at %d safepoints", ret, u.Safepoints)
				}
			}
		})
		best := time.Hour
		for range 10 {
			late := lateness(time.Second)
			t.Logf("latest tick: %v", late)
			if best = min(best, late); best <= 100*time.Millisecond {
				break
			}
		}
		cancel()
		wg.Wait()
		if best > 100*time.Millisecond {
			t.Errorf("a tick was late by %v", best)
		}
	})
}

// The largest memory that wazero can address ends one page below 4 GiB.
func TestFillUpToTheEndOfTheLargestMemory(t *testing.T) {
	const pages = 1<<16 - 1
	w := newWorld(t, filling(pages))
	w.inTask(func(s *Slot, cfg TaskConfig) {
		const n, end = 9 << 20, pages << 16
		cfg.Args = [3]uint32{end - n, 7, n}
		if ret, _ := run(t, s, cfg); ret != 7 {
			t.Errorf("the last byte is %d", ret)
		}
		for _, n := range []uint32{n + 1, n + 1<<16, n + 1<<16 + 1, 1<<32 - 1} { // some wrap around
			cfg.Args[2] = n
			_, _, err := s.Run(context.Background(), cfg)
			e, ok := err.(*Trap)
			if !ok || e.Reason != "out of bounds memory access" || len(e.Stack) == 0 || e.Stack[0] != "$3" {
				t.Errorf("%d bytes: %#v", n, err)
			}
		}
	})
}
