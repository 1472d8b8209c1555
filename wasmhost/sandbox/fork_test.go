package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/wasmhost/image"
)

// variants runs f with images that are mapped and with images that are copied.
// Where they cannot be mapped, both are copied.
func variants(t *testing.T, f func(t *testing.T, heap func(*Options))) {
	t.Run("default", func(t *testing.T) { f(t, func(*Options) {}) })
	t.Run("copied", func(t *testing.T) {
		f(t, func(o *Options) {
			store, err := image.NewStore(image.Options{Heap: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			o.Images = store
		})
	})
}

// capture makes an image in a host call and releases it with the test.
func (w *world) capture(c *Call, prev *image.Image) *image.Image {
	w.t.Helper()
	img, err := c.Instance.Capture(prev)
	if err != nil {
		w.t.Error(err)
		c.Fail(err)
	}
	w.images = append(w.images, img)
	return img
}

// run runs one task that must succeed.
func run(t testing.TB, s *Slot, cfg TaskConfig) (int64, Usage) {
	t.Helper()
	ret, usage, err := s.Run(context.Background(), cfg)
	if err != nil {
		t.Errorf("task %v: %v", cfg.Args, err)
	}
	return ret, usage
}

func (w *world) start(e *env, args ...string) {
	w.t.Helper()
	code, err := w.prog.Start(context.Background(), DriverConfig{Args: append([]string{"guest"}, args...), Env: e})
	if code != 0 || err != nil {
		w.t.Fatalf("the driver ended with code %d: %v", code, err)
	}
}

func TestTaskSeesWhatTheDriverCapturedAndChangesNothing(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, goGuest(t), heap)
		var tasks []string
		var prev *image.Image
		e := &env{act: func(c *Call, n int32) {
			img := w.capture(c, prev)
			prev = img
			one, two := w.slot(), w.slot()
			for _, s := range []*Slot{one, one, two, one} {
				te := &env{}
				run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n), 5}, Env: te})
				tasks = append(tasks, te.said...)
			}
		}}
		w.start(e, "captured")
		first, second := "47 [a=1 task5=7] [1 2 3 5]", "105 [a=1 b=2 task5=7] [9 2 3 5]"
		if diff := cmp.Diff([]string{first, first, first, first, second, second, second, second}, tasks); diff != "" {
			t.Error(diff)
		}
		want := []string{"driver 42 map[a:1] [1 2 3]", "driver 100 map[a:1 b:2] [9 2 3]"}
		if diff := cmp.Diff(want, e.said); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTaskInCSeesWhatTheDriverCapturedAndChangesNothing(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, cGuest(t), heap)
		var got []string
		e := &env{act: func(c *Call, n int32) {
			img := w.capture(c, nil)
			s := w.slot()
			for p := range uint32(3) {
				te := &env{}
				ret, _ := run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, 1, p}, Env: te})
				got = append(got, fmt.Sprint(ret, te.said))
			}
		}}
		w.start(e)
		want := []string{"40 [bpple]", "41 [bpple]", "42 [bpple]", "100 [{pple]", "101 [{pple]", "102 [{pple]"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestGoRuntimeLivesOnInTheClone(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, goGuest(t), heap)
		w.start(&env{act: func(c *Call, n int32) {
			img := w.capture(c, nil)
			s := w.slot()
			for range 5 {
				if ret, _ := run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n)}}); ret != 1 {
					t.Errorf("check %d of the guest failed", -ret)
				}
			}
		}}, "busy")
	})
}

func TestSlotAlternatesBetweenImages(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, goGuest(t), heap)
		var images []*image.Image
		e := &env{act: func(c *Call, n int32) {
			var prev *image.Image
			if len(images) > 0 {
				prev = images[0]
			}
			images = append(images, w.capture(c, prev))
		}}
		w.start(e, "two")
		if images[0].Len() >= images[1].Len() {
			t.Fatalf("the images have %d and %d bytes, the second should be longer", images[0].Len(), images[1].Len())
		}
		s := w.slot()
		tasks := uint32(2000)
		if !w.store.Mapped() {
			tasks = 200 // 8 MB are copied for each
		}
		for i := range tasks {
			which := int(i * 7 / 3 % 2)
			ret, u := run(t, s, TaskConfig{Image: images[which], Args: [3]uint32{0, 0, i}})
			if ret != int64(which+1) || u.PeakMemory-u.Grown != images[which].Len() {
				t.Fatalf("task %d in image %d answered %d and used %+v", i, which, ret, u)
			}
		}
	})
}

func TestMemoryGrownByATaskIsZeroForTheNext(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, cGuest(t), heap)
		e := &env{act: func(c *Call, n int32) {
			img := w.capture(c, nil)
			s := w.slot()
			pages := img.Len() / image.ChunkSize
			for _, p := range []uint32{1, 30, 500, 3, 100} {
				var granted int64
				ret, u := run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, 9, p},
					Grow: func(delta int64) error { granted += delta; return nil }})
				if ret < pages+int64(p) || ret > pages+int64(p)+2 {
					t.Errorf("after allocating %d pages the memory has %d, began with %d", p, ret, pages)
				}
				if u.PeakMemory != ret*image.ChunkSize || u.Grown != granted || granted != u.PeakMemory-img.Len() {
					t.Errorf("used %+v, granted %d", u, granted)
				}
			}
		}}
		w.start(e)
	})
}

func TestSlotsRunInParallel(t *testing.T) {
	variants(t, func(t *testing.T, heap func(*Options)) {
		w := newWorld(t, goGuest(t), heap)
		w.start(&env{act: func(c *Call, n int32) {
			img := w.capture(c, nil)
			var wg sync.WaitGroup
			for range 4 {
				s := w.slot()
				wg.Go(func() {
					for p := range uint32(200) {
						if ret, _ := run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n), p}}); ret != int64(p) {
							t.Errorf("task %d answered %d", p, ret)
						}
					}
				})
			}
			wg.Wait()
		}}, "empty")
	})
}

func TestStreams(t *testing.T) {
	w := newWorld(t, goGuest(t))
	w.start(&env{act: func(c *Call, n int32) {
		img := w.capture(c, nil)
		s := w.slot()
		for p := range uint32(3) {
			var out, err bytes.Buffer
			run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n), p}, Stdout: &out, Stderr: &err})
			if want := fmt.Sprintf("out %d\nerr %d\n", p, p); out.String()+err.String() != want {
				t.Errorf("task %d wrote %q and %q", p, &out, &err)
			}
		}
		run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n)}}) // nowhere
	}}, "output")

	var out, stderr bytes.Buffer
	e := &env{}
	_, err := w.prog.Start(context.Background(), DriverConfig{
		Args: []string{"guest", "args", "a b"}, Environ: []string{"KEY=a=b", "EMPTY="}, Stdin: strings.NewReader("input"),
		Stdout: &out, Stderr: &stderr, Env: e,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`["args" "a b"] ["KEY=a=b" "EMPTY="]`, `"input" <nil>`, "open /etc/passwd: Bad file number"}
	if diff := cmp.Diff(want, e.said); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("to stdout\nto stderr\n", out.String()+stderr.String()); diff != "" {
		t.Error(diff)
	}
}

func TestRandomNumbersComeFromTheSeed(t *testing.T) {
	w := newWorld(t, goGuest(t))
	drivers := map[string]int{}
	for _, seed := range []byte{1, 1, 2} {
		tasks := map[string]int{}
		e := &env{act: func(c *Call, n int32) {
			img := w.capture(c, nil)
			for _, s := range []*Slot{w.slot(), w.slot()} {
				for _, seed := range []byte{7, 7, 8} {
					te := &env{}
					run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n)}, Seed: [32]byte{seed}, Env: te})
					tasks[te.said[0]]++
				}
			}
		}}
		if _, err := w.prog.Start(context.Background(), DriverConfig{
			Args: []string{"guest", "random"}, Seed: [32]byte{seed}, Env: e,
		}); err != nil {
			t.Fatal(err)
		}
		if len(tasks) != 2 {
			t.Errorf("two seeds gave %d different draws: %v", len(tasks), tasks)
		}
		drivers[e.said[0]]++
	}
	if len(drivers) != 2 {
		t.Errorf("two seeds gave %d different draws: %v", len(drivers), drivers)
	}
}

// An image that went through a manifest, as to another machine, works the same.
func TestAssembledImage(t *testing.T) {
	w := newWorld(t, goGuest(t))
	other, err := image.NewStore(image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	w.start(&env{act: func(c *Call, n int32) {
		img := w.capture(c, nil)
		far, err := other.Assemble(img.Manifest(), func(i int, _ image.Hash) ([]byte, error) { return img.Page(i), nil })
		if err != nil {
			t.Error(err)
			return
		}
		s := w.slot()
		for range 2 {
			for _, img := range []*image.Image{img, far} {
				time.Sleep(time.Millisecond)
				if ret, _ := run(t, s, TaskConfig{Image: img, Args: [3]uint32{0, uint32(n)}}); ret != 1 {
					t.Errorf("check %d of the guest failed", -ret)
				}
			}
		}
		s.Close()
		far.Release()
	}}, "busy")
}

func TestImageOfAnotherProgramIsRefused(t *testing.T) {
	c, g := newWorld(t, cGuest(t)), newWorld(t, goGuest(t))
	c.start(&env{act: func(call *Call, n int32) {
		img := c.capture(call, nil)
		if _, _, err := g.slot().Run(context.Background(), TaskConfig{Image: img}); err == nil ||
			!strings.Contains(err.Error(), "not an image of this program") {
			t.Error(err)
		}
	}})
	if _, _, err := g.slot().Run(context.Background(), TaskConfig{}); err == nil {
		t.Error("a task without an image ran")
	}
}

func TestExitCodeOfTheDriver(t *testing.T) {
	w := newWorld(t, goGuest(t))
	code, err := w.prog.Start(context.Background(), DriverConfig{Args: []string{"guest", "exit3"}, Env: &env{}})
	if code != 3 || err != nil {
		t.Error(code, err)
	}
	var stderr strings.Builder
	code, err = w.prog.Start(context.Background(), DriverConfig{Args: []string{"guest", "panic"}, Stderr: &stderr, Env: &env{}})
	if code != 2 || err != nil || !strings.Contains(stderr.String(), "panic: the driver is unhappy") {
		t.Error(code, err, stderr.String())
	}
	code, err = w.prog.Start(context.Background(), DriverConfig{Args: []string{"guest", "hostboom"}, Env: &env{}})
	var he *HostError
	if code == 0 || !errors.As(err, &he) {
		t.Error(code, err)
	}
}
