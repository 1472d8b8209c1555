package sandbox

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/quern-project/quern/wasmhost/image"
)

// inDriver runs f inside the first host call of a guest's scenario.
func (w *world) inDriver(scenario string, f func(c *Call, n int32)) {
	w.t.Helper()
	e := &env{}
	first := true
	e.act = func(c *Call, n int32) {
		if first {
			first = false
			f(c, n)
		}
	}
	code, err := w.prog.Start(context.Background(), DriverConfig{Args: []string{"guest", scenario}, Env: e})
	if err != nil {
		w.t.Fatal(code, err)
	}
}

// benchmarkTask runs small tasks after those given in warm.
func benchmarkTask(b *testing.B, wasm []byte, scenario string, warm ...uint32) {
	w := newWorld(b, wasm)
	w.inDriver(scenario, func(c *Call, n int32) {
		img, err := c.Instance.Capture(nil)
		if err != nil {
			b.Fatal(err)
		}
		defer img.Release()
		s := w.prog.NewSlot()
		defer s.Close()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		cfg := TaskConfig{Image: img, Args: [3]uint32{0, uint32(n), 3}}
		for _, partition := range warm {
			first := cfg
			first.Args[2] = partition
			if _, _, err := s.Run(ctx, first); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := s.Run(ctx, cfg); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTaskC(b *testing.B)       { benchmarkTask(b, cGuest(b), "0") }
func BenchmarkTaskGo(b *testing.B)      { benchmarkTask(b, goGuest(b), "empty") }
func BenchmarkTaskGo100MB(b *testing.B) { benchmarkTask(b, goGuest(b), "big") }

// BenchmarkTaskGo100MBRead is small tasks after one that has read all of the heap.
func BenchmarkTaskGo100MBRead(b *testing.B) { benchmarkTask(b, goGuest(b), "big", 100) }

// BenchmarkTaskGoParallel is tasks on all cores at once; ns/op is per task.
func BenchmarkTaskGoParallel(b *testing.B) {
	w := newWorld(b, goGuest(b))
	w.inDriver("empty", func(c *Call, n int32) {
		img, err := c.Instance.Capture(nil)
		if err != nil {
			b.Fatal(err)
		}
		defer img.Release()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			s := w.prog.NewSlot()
			defer s.Close()
			for pb.Next() {
				if _, _, err := s.Run(context.Background(), TaskConfig{Image: img, Args: [3]uint32{0, uint32(n), 3}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkTaskGoAlternating turns the slot to another image for each task.
func BenchmarkTaskGoAlternating(b *testing.B) {
	w := newWorld(b, goGuest(b))
	e := &env{}
	var images []*image.Image
	e.act = func(c *Call, n int32) {
		var prev *image.Image
		if len(images) > 0 {
			prev = images[0]
		}
		img, err := c.Instance.Capture(prev)
		if err != nil {
			b.Fatal(err)
		}
		images = append(images, img)
	}
	if _, err := w.prog.Start(context.Background(), DriverConfig{Args: []string{"guest", "two"}, Env: e}); err != nil {
		b.Fatal(err)
	}
	s := w.prog.NewSlot()
	i := 0
	for b.Loop() {
		i++
		if _, _, err := s.Run(context.Background(), TaskConfig{Image: images[i%2], Args: [3]uint32{0, 0, 1}}); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
	for _, img := range images {
		img.Release()
	}
}

// BenchmarkCapture* report the time for each MiB of the driver's memory.
func BenchmarkCaptureFirst(b *testing.B) { benchmarkCapture(b, false) }

// BenchmarkCaptureSecond is a capture when one chunk in a hundred has changed
// since the one before.
func BenchmarkCaptureSecond(b *testing.B) { benchmarkCapture(b, true) }

func benchmarkCapture(b *testing.B, second bool) {
	w := newWorld(b, goGuest(b))
	w.inDriver("big", func(c *Call, n int32) {
		capture := func(prev *image.Image) *image.Image {
			img, err := c.Instance.Capture(prev)
			if err != nil {
				b.Fatal(err)
			}
			return img
		}
		var prev *image.Image
		if second {
			prev = capture(nil)
			defer prev.Release()
		}
		memory, round := c.Memory(), byte(0)
		change := func(by byte) {
			for at := 0; second && at < len(memory); at += 100 * image.ChunkSize {
				memory[at] += by
			}
		}
		for b.Loop() {
			round++
			change(1)
			capture(prev).Release()
		}
		change(-round) // the guest goes on
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(float64(len(memory))/(1<<20)), "ns/MiB")
	})
}

func BenchmarkLoadWarm(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "cache")
	wasm := goGuest(b)
	w := newWorld(b, wasm, func(o *Options) { o.CacheDir = dir })
	ctx := context.Background()
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		p, err := w.host.Load(ctx, wasm)
		if err != nil {
			b.Fatal(err)
		}
		p.Close(ctx)
	}
}

func BenchmarkLoadCold(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "cache")
	wasm := goGuest(b)
	w := newWorld(b, wasm, func(o *Options) { o.CacheDir = dir; o.Compiler = compiler() })
	ctx := context.Background()
	for b.Loop() {
		w.host.cache.size = 1
		if err := w.host.cache.evict(""); err != nil {
			b.Fatal(err)
		}
		p, err := w.host.Load(ctx, wasm)
		if err != nil {
			b.Fatal(err)
		}
		p.Close(ctx)
	}
}

// BenchmarkStart is a driver from its start to its end, with a Go runtime inside.
func BenchmarkStart(b *testing.B) {
	w := newWorld(b, goGuest(b))
	for b.Loop() {
		w.start(&env{act: func(*Call, int32) {}}, "empty")
	}
}

func BenchmarkNewHost(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "cache")
	for b.Loop() {
		h, err := New(context.Background(), Options{Functions: testFunctions, CacheDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		h.Close(context.Background())
	}
}
