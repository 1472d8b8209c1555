package linearmem_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/linearmem"
)

const page = linearmem.PageSize

// guest stands for wazero's memory: it grows by Reallocate and has a maximum.
type guest struct {
	mem *linearmem.LinearMemory
	b   []byte
	max uint64
}

func (g *guest) Grow(delta uint32) (uint32, bool) {
	before := uint32(len(g.b) / page)
	size := (uint64(before) + uint64(delta)) * page
	if size > g.max {
		return 0, false
	}
	b := g.mem.Reallocate(size)
	if b == nil {
		return 0, false
	}
	g.b = b
	return before, true
}

// newGuest makes a memory of max pages that begins with min.
func newGuest(t interface {
	Fatal(...any)
	Cleanup(func())
}, min, max int, copying bool) *guest {
	mem, err := linearmem.New(int64(max)*page, copying)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{mem: mem, max: uint64(max+1) * page}
	if g.b = mem.Reallocate(uint64(min) * page); g.b == nil {
		t.Fatal("no memory to begin with")
	}
	t.Cleanup(func() {
		if err := mem.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return g
}

// variants runs f with images that are mapped and with images that are copied.
func variants(t *testing.T, f func(t *testing.T, store *image.Store, copying bool)) {
	for _, copying := range []bool{false, true} {
		t.Run(fmt.Sprint("copying=", copying), func(t *testing.T) {
			store, err := image.NewStore(image.Options{Heap: copying})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			f(t, store, copying)
		})
	}
}

// makeImage makes an image whose pages begin with the letters of spec; '.' is a
// page of zeros.
func makeImage(t interface{ Fatal(...any) }, s *image.Store, spec string, prev *image.Image) *image.Image {
	b := make([]byte, len(spec)*page)
	for i, c := range []byte(spec) {
		if c != '.' {
			b[i*page], b[(i+1)*page-1] = c, c
		}
	}
	img, err := s.Capture(image.State{Memory: b}, prev)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// spec is the inverse of makeImage.
func spec(b []byte) string {
	var s strings.Builder
	for ; len(b) > 0; b = b[page:] {
		c := b[0]
		if c == 0 {
			c = '.'
		}
		if b[0] != b[page-1] || !bytes.Equal(b[1:page-1], make([]byte, page-2)) {
			c = '?'
		}
		s.WriteByte(c)
	}
	return s.String()
}

func TestLoadAndReset(t *testing.T) {
	variants(t, func(t *testing.T, store *image.Store, copying bool) {
		g := newGuest(t, 1, 20, copying)
		for _, want := range []string{"abc", "abc", "a.c..b", "x", "....", "abcabc", "abcdefghijklmnopqrst", "ab"} {
			img := makeImage(t, store, want, nil)
			defer img.Release()
			for range 3 {
				if err := g.mem.Load(img, g); err != nil {
					t.Fatal(err)
				}
				if got := spec(g.b); got != want || &g.b[0] != &g.mem.Bytes()[0] || g.mem.Len() != int64(len(g.b)) {
					t.Fatalf("loaded %q, the guest sees %q", want, got)
				}
				g.mem.Begin(linearmem.Limit{Bytes: 20 * page})
				if len(g.b) < 20*page {
					if _, ok := g.Grow(1); !ok {
						t.Fatal("growth was refused")
					}
				}
				for i := 1; i < len(g.b); i += 1000 {
					g.b[i] = 0xee
				}
				if err := g.mem.Reset(g); err != nil {
					t.Fatal(err)
				}
				if got := spec(g.b); got != want {
					t.Fatalf("reset to %q, the guest sees %q", want, got)
				}
			}
		}
	})
}

func TestTwoMemoriesOfOneImageAreIndependent(t *testing.T) {
	variants(t, func(t *testing.T, store *image.Store, copying bool) {
		img := makeImage(t, store, "ab.", nil)
		defer img.Release()
		one, two := newGuest(t, 1, 10, copying), newGuest(t, 1, 10, copying)
		for _, g := range []*guest{one, two} {
			if err := g.mem.Load(img, g); err != nil {
				t.Fatal(err)
			}
			g.mem.Begin(linearmem.Limit{Bytes: 10 * page})
		}
		one.b[0], one.b[2*page] = 'x', 'y'
		if got := spec(two.b); got != "ab." {
			t.Errorf("the other memory shows %q", got)
		}
		if !bytes.Equal(img.Page(0)[:1], []byte("a")) || img.Page(2) != nil {
			t.Error("the image has changed")
		}
	})
}

// Any sequence of loads, runs, growths and resets leaves what a plain buffer
// would hold, with images that follow each other and images of different stores.
func TestMemoryBehavesLikeABuffer(t *testing.T) {
	variants(t, func(t *testing.T, store *image.Store, copying bool) {
		other, err := image.NewStore(image.Options{Heap: copying})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		rapid.Check(t, func(rt *rapid.T) {
			var cleanup []func()
			defer func() {
				for i := len(cleanup) - 1; i >= 0; i-- {
					cleanup[i]()
				}
			}()
			c := cleaner{rt, &cleanup}
			max := 24
			g := newGuest(c, 1, max, copying)
			specs := []string{}
			images := []*image.Image{}
			stores := []*image.Store{store, other}
			last := map[*image.Store]*image.Image{}
			pages := rapid.StringOfN(rapid.SampledFrom([]rune("..abcdefgh")), 1, max, -1)
			for range rapid.IntRange(1, 4).Draw(rt, "images") {
				s := rapid.SampledFrom(stores).Draw(rt, "store")
				p := pages.Draw(rt, "pages")
				img := makeImage(rt, s, p, last[s])
				c.Cleanup(img.Release)
				last[s] = img
				specs, images = append(specs, p), append(images, img)
			}
			// Released last to first, the memory's image must outlive the memory.
			g2 := newGuest(c, 1, max, copying)
			model := []byte(nil)
			current := -1
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				switch step := rapid.IntRange(0, 3).Draw(rt, "step"); {
				case step == 0 || current < 0:
					current = rapid.IntRange(0, len(images)-1).Draw(rt, "image")
					if err := g2.mem.Load(images[current], g2); err != nil {
						rt.Fatal(err)
					}
					model = expand(specs[current])
					g2.mem.Begin(linearmem.Limit{Bytes: int64(max) * page})
				case step == 1:
					n := rapid.IntRange(0, 4).Draw(rt, "growth")
					_, ok := g2.Grow(uint32(n))
					if want := len(model)+n*page <= max*page; ok != want && n > 0 {
						rt.Fatalf("growth by %d of %d pages: %v", n, len(model)/page, ok)
					}
					if ok {
						model = append(model, make([]byte, n*page)...)
					}
				case step == 2:
					for range rapid.IntRange(0, 600).Draw(rt, "writes") {
						at := rapid.IntRange(0, len(model)-1).Draw(rt, "at")
						model[at], g2.b[at] = 'W', 'W'
					}
				default:
					if err := g2.mem.Reset(g2); err != nil {
						rt.Fatal(err)
					}
					model = expand(specs[current])
					g2.mem.Begin(linearmem.Limit{Bytes: int64(max) * page})
				}
				if !bytes.Equal(model, g2.b) {
					rt.Fatalf("memory differs from the model, %d and %d bytes", len(g2.b), len(model))
				}
			}
			_ = g
		})
	})
}

func expand(spec string) []byte {
	b := make([]byte, len(spec)*page)
	for i, c := range []byte(spec) {
		if c != '.' {
			b[i*page], b[(i+1)*page-1] = c, c
		}
	}
	return b
}

// cleaner gives a rapid.T the Cleanup that runs at the end of each check.
type cleaner struct {
	*rapid.T
	cleanup *[]func()
}

func (c cleaner) Cleanup(f func()) { *c.cleanup = append(*c.cleanup, f) }

func TestLimit(t *testing.T) {
	variants(t, func(t *testing.T, store *image.Store, copying bool) {
		g := newGuest(t, 2, 100, copying)
		img := makeImage(t, store, "ab", nil)
		defer img.Release()
		if err := g.mem.Load(img, g); err != nil {
			t.Fatal(err)
		}
		g.mem.Begin(linearmem.Limit{Bytes: 5 * page})
		for _, step := range []struct {
			delta uint32
			ok    bool
		}{{2, true}, {2, false}, {1, true}, {1, false}, {200, false}} {
			if _, ok := g.Grow(step.delta); ok != step.ok {
				t.Errorf("growth by %d to a limit of 5 pages: %v", step.delta, ok)
			}
		}
		if r := g.mem.Refused(); r == nil || *r != (linearmem.Refusal{Limit: 5 * page, Use: 4 * page, Delta: 2 * page}) {
			t.Errorf("refused %+v", r)
		}
		empty := errors.New("the pool is empty")
		asked := []int64{}
		g.mem.Begin(linearmem.Limit{Bytes: 100 * page, Grow: func(delta int64) error {
			asked = append(asked, delta)
			if len(asked) == 2 {
				return empty
			}
			return nil
		}})
		if g.mem.Refused() != nil {
			t.Error("an old refusal is remembered")
		}
		for range 3 {
			g.Grow(3)
		}
		if r := g.mem.Refused(); r == nil || !errors.Is(r.Cause, empty) || r.Use != 8*page {
			t.Errorf("refused %+v", r)
		}
		if fmt.Sprint(asked) != fmt.Sprint([]int64{3 * page, 3 * page, 3 * page}) || g.mem.Len() != 11*page {
			t.Errorf("asked for %v, has %d", asked, g.mem.Len())
		}
	})
}

func TestFreeTakesNothingAwayBeforeClose(t *testing.T) {
	for _, copying := range []bool{false, true} {
		g := newGuest(t, 2, 10, copying)
		g.mem.Free()
		g.b[page] = 1 // would be a fault that cannot be recovered from
		if g.mem.Len() != 2*page {
			t.Error("the memory is gone")
		}
	}
}

func TestWhatCannotBeLoadedIsAnError(t *testing.T) {
	variants(t, func(t *testing.T, store *image.Store, copying bool) {
		g := newGuest(t, 1, 3, copying)
		if err := g.mem.Reset(g); err == nil {
			t.Error("reset without an image")
		}
		for _, spec := range []string{"", "abcd"} {
			img := makeImage(t, store, spec, nil)
			defer img.Release()
			if err := g.mem.Load(img, g); err == nil {
				t.Errorf("%d pages were loaded into 3", len(spec))
			}
		}
		// A memory whose declared maximum leaves no page to spare cannot become shorter.
		g = newGuest(t, 3, 3, copying)
		g.max = 3 * page
		for spec, want := range map[string]bool{"abc": true, "ab": false} {
			img := makeImage(t, store, spec, nil)
			defer img.Release()
			if err := g.mem.Load(img, g); (err == nil) != want {
				t.Errorf("%q: %v", spec, err)
			}
		}
	})
	for _, max := range []int64{0, -page, page + 1, (linearmem.MaxPages + 1) * page} {
		if _, err := linearmem.New(max, false); err == nil {
			t.Errorf("a memory of %d bytes was made", max)
		}
	}
	heap, err := image.NewStore(image.Options{Heap: true})
	if err != nil {
		t.Fatal(err)
	}
	defer heap.Close()
	if g := newGuest(t, 1, 3, false); linearmem.MappedSupported {
		if err := g.mem.Load(makeImage(t, heap, "a", nil), g); err == nil || !strings.Contains(err.Error(), "cannot be mapped") {
			t.Error(err)
		}
	}
}

// distinct is an image of n pages that are all different.
func distinct(t interface{ Fatal(...any) }, s *image.Store, n int) *image.Image {
	b := make([]byte, n*page)
	for i := range n {
		b[i*page], b[i*page+1] = byte(i), byte(i>>8)+1
	}
	img, err := s.Capture(image.State{Memory: b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// BenchmarkReset is the cost of forgetting what a task wrote to n small pages.
func BenchmarkReset(b *testing.B) {
	for _, n := range []int{1, 20, 200, 2000} {
		b.Run(fmt.Sprint("written=", n), func(b *testing.B) {
			store, err := image.NewStore(image.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			img := distinct(b, store, 2100)
			defer img.Release()
			g := newGuest(b, 1, 3000, false)
			if err := g.mem.Load(img, g); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				g.mem.Begin(linearmem.Limit{Bytes: 3000 * page})
				for i := range n {
					g.b[i*4096*16] = 1
				}
				if err := g.mem.Reset(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
