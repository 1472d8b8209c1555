package image

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/wasmhost/linearmem"
)

// stores runs f with a store of each kind, which must be empty at the end.
func stores(t *testing.T, f func(t *testing.T, s *Store)) {
	for _, heap := range []bool{false, true} {
		t.Run(fmt.Sprint("heap=", heap), func(t *testing.T) {
			s, err := NewStore(Options{Heap: heap})
			if err != nil {
				t.Fatal(err)
			}
			f(t, s)
			if n := s.Stats().Chunks; n != 0 {
				t.Errorf("%d chunks are left", n)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// content is a memory of one chunk a letter; '.' is zeros.
func content(spec string) []byte {
	b := make([]byte, len(spec)*ChunkSize)
	for i, c := range []byte(spec) {
		if c != '.' {
			b[i*ChunkSize+i] = c // equal letters at different places are different chunks
		}
	}
	return b
}

func capture(t interface{ Fatal(...any) }, s *Store, spec string, prev *Image) *Image {
	img, err := s.Capture(State{Memory: content(spec), Globals: []uint64{uint64(len(spec)), 1 << 63}}, prev)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// bytesOf is the memory that an image holds.
func bytesOf(img *Image) []byte {
	b := make([]byte, 0, img.Len())
	for i := range img.Places() {
		if p := img.Page(i); p != nil {
			b = append(b, p...)
		} else {
			b = append(b, zeros[:]...)
		}
	}
	return b
}

func TestCaptureKeepsMemoryAndGlobals(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		img := capture(t, s, "a..bcc.", nil)
		defer img.Release()
		if !bytes.Equal(bytesOf(img), content("a..bcc.")) {
			t.Error("the memory differs")
		}
		if diff := cmp.Diff([]uint64{7, 1 << 63}, img.Globals()); diff != "" {
			t.Error(diff)
		}
		if img.Len() != 7*ChunkSize || img.Resident() != 4*ChunkSize || s.Stats().Bytes != 4*ChunkSize {
			t.Errorf("length %d, resident %d, store %+v", img.Len(), img.Resident(), s.Stats())
		}
	})
}

func TestSecondCaptureCostsWhatHasChanged(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		one := capture(t, s, "abcd.f", nil)
		for spec, fresh := range map[string]int{
			"abcd.f": 0, "abXd.f": 1, "....": 0, "abcdef": 1, "abcd.fgh": 2, "": 0,
		} {
			two := capture(t, s, spec, one)
			without := capture(t, s, spec, nil)
			if got := s.Stats().Chunks - 5; got != fresh {
				t.Errorf("%q after %q keeps %d new chunks, want %d", spec, "abcd.f", got, fresh)
			}
			if !bytes.Equal(bytesOf(two), content(spec)) || !bytes.Equal(bytesOf(without), content(spec)) {
				t.Errorf("%q is captured wrongly", spec)
			}
			two.Release()
			without.Release()
		}
		// An image of another store is no help, and no harm.
		other, err := NewStore(Options{Heap: true})
		if err != nil {
			t.Fatal(err)
		}
		far := capture(t, other, "abcd.f", one)
		if !bytes.Equal(bytesOf(far), content("abcd.f")) {
			t.Error("captured wrongly")
		}
		one.Release()
		if !bytes.Equal(bytesOf(far), content("abcd.f")) {
			t.Error("gone with an image of another store")
		}
		far.Release()
		other.Close()
	})
}

func TestChunksLiveAsLongAsTheirImages(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		one := capture(t, s, "abc", nil)
		two := capture(t, s, "aXc", one)
		one.Retain()
		one.Release()
		if n := s.Stats().Chunks; n != 4 {
			t.Errorf("%d chunks", n)
		}
		one.Release()
		if n := s.Stats().Chunks; n != 3 || !bytes.Equal(bytesOf(two), content("aXc")) {
			t.Errorf("%d chunks, or wrong ones", n)
		}
		// The free place is used again.
		three := capture(t, s, "Y", nil)
		if three.Places()[0] != 1 {
			t.Errorf("placed at %v", three.Places())
		}
		three.Release()
		two.Release()
	})
}

func TestCaptureOfAnOddLengthIsAnError(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		if _, err := s.Capture(State{Memory: make([]byte, ChunkSize+1)}, nil); err == nil {
			t.Error("no error")
		}
	})
}

func TestClockGoesOn(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		img, err := s.Capture(State{Clock: 1000}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Release()
		before := img.Clock()
		time.Sleep(time.Millisecond)
		far, err := s.Assemble(img.Manifest(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer far.Release()
		if before < 1000 || far.Clock() < before+int64(time.Millisecond) {
			t.Errorf("the clock shows %d, then %d", before, far.Clock())
		}
	})
}

// After any sequence of captures and releases each image that is left has its
// content, and nothing else is kept.
func TestStoreBehavesLikeCopies(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		rapid.Check(t, func(rt *rapid.T) {
			type kept struct {
				img  *Image
				want []byte
			}
			var all []kept
			defer func() {
				for _, k := range all {
					k.img.Release()
				}
				if n := s.Stats().Chunks; n != 0 {
					rt.Fatalf("%d chunks are left", n)
				}
			}()
			for range rapid.IntRange(1, 15).Draw(rt, "steps") {
				if len(all) > 0 && rapid.IntRange(0, 2).Draw(rt, "release") == 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(rt, "which")
					all[i].img.Release()
					all = append(all[:i], all[i+1:]...)
					continue
				}
				var prev *Image
				if len(all) > 0 && rapid.Bool().Draw(rt, "after") {
					prev = rapid.SampledFrom(all).Draw(rt, "prev").img
				}
				spec := rapid.StringOfN(rapid.SampledFrom([]rune("..aabcd")), 0, 12, -1).Draw(rt, "spec")
				img := capture(rt, s, spec, prev)
				if rapid.IntRange(0, 4).Draw(rt, "compact") == 0 {
					if err := s.compact(img.chunks); err != nil {
						rt.Fatal(err)
					}
					img.fillPlaces()
				}
				all = append(all, kept{img, content(spec)})
				for _, k := range all {
					if !bytes.Equal(bytesOf(k.img), k.want) {
						rt.Fatalf("an image has changed")
					}
				}
			}
		})
	})
}

func TestFragmentedImageIsWrittenInOnePiece(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		s.maxRuns = 100
		const n = 300
		rng := rand.New(rand.NewPCG(1, 2))
		mem := make([]byte, n*ChunkSize)
		for i := range n {
			mem[i*ChunkSize] = byte(i)
			mem[i*ChunkSize+1] = byte(i>>8) + 1
		}
		one, err := s.Capture(State{Memory: mem}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Every second chunk changes, some become zeros.
		for i := 0; i < n; i += 2 {
			mem[i*ChunkSize+2] = 7
			if rng.IntN(4) == 0 {
				clear(mem[i*ChunkSize : (i+1)*ChunkSize])
			}
		}
		two, err := s.Capture(State{Memory: mem}, one)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := runs(one.Places()), runs(two.Places()); a != 1 || b != 1 {
			t.Errorf("%d and %d runs", a, b)
		}
		if !bytes.Equal(bytesOf(two), mem) {
			t.Error("the content differs")
		}
		// The next one that changes little shares what was moved.
		before := s.Stats().Chunks
		mem[5*ChunkSize+3] = 9
		three, err := s.Capture(State{Memory: mem}, two)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Stats().Chunks - before; got != 1 || runs(three.Places()) > 3 {
			t.Errorf("%d new chunks, %d runs", got, runs(three.Places()))
		}
		one.Release()
		two.Release()
		if !bytes.Equal(bytesOf(three), mem) {
			t.Error("the content differs after its relatives are gone")
		}
		three.Release()
	})
}

func TestAssemble(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		stores(t, func(t *testing.T, far *Store) {
			img := capture(t, s, "ab.dda", nil)
			old := capture(t, far, "a..d", nil)
			var fetched []int
			fetch := func(i int, h Hash) ([]byte, error) {
				fetched = append(fetched, i)
				return img.Page(i), nil
			}
			got, err := far.Assemble(img.Manifest(), fetch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]int{1, 4, 5}, fetched); diff != "" {
				t.Errorf("fetched other chunks than those that were missing: %s", diff)
			}
			if !bytes.Equal(bytesOf(got), content("ab.dda")) || !cmp.Equal(got.Globals(), img.Globals()) {
				t.Error("the image differs")
			}
			img.Release()
			old.Release()
			got.Release()
		})
	})
}

func TestAssembleRefusesWhatDoesNotMatch(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		far, err := NewStore(Options{Heap: true})
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		img := capture(t, s, "abc", nil)
		defer img.Release()
		gone := errors.New("the connection is gone")
		for want, answer := range map[string]func(i int) ([]byte, error){
			"does not have this hash":          func(i int) ([]byte, error) { return img.Page(2 - i), nil },
			"received 3 bytes instead":         func(i int) ([]byte, error) { return img.Page(i)[:3], nil },
			"received 0 bytes instead":         func(i int) ([]byte, error) { return nil, nil },
			"chunk 0 of 3":                     func(i int) ([]byte, error) { return nil, gone },
			"the connection is gone":           func(i int) ([]byte, error) { return nil, gone },
			"assemble an image: chunk 2 of 3 ": func(i int) ([]byte, error) { return img.Page(min(i, 1)), nil },
		} {
			_, err := far.Assemble(img.Manifest(), func(i int, _ Hash) ([]byte, error) { return answer(i) })
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want it to say %q", err, want)
			}
			if n := far.Stats().Chunks; n != 0 {
				t.Errorf("%d chunks of a failed image are kept", n)
			}
		}
		if _, err := far.Assemble(Manifest{Chunks: make([]Hash, linearmem.MaxPages+1)}, nil); err == nil {
			t.Error("an image of more than 4 GiB was assembled")
		}
	})
}

// FuzzAssemble feeds manifests and chunks from outside.
func FuzzAssemble(f *testing.F) {
	f.Add([]byte{}, []byte{})
	h := hashOf(content("a"))
	f.Add(h[:], content("a"))
	f.Add(append(make([]byte, 16), h[:]...), content("b"))
	f.Fuzz(func(t *testing.T, hashes, chunk []byte) {
		s, err := NewStore(Options{Heap: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var m Manifest
		for ; len(hashes) >= 16; hashes = hashes[16:] {
			m.Chunks = append(m.Chunks, Hash(hashes))
		}
		img, err := s.Assemble(m, func(int, Hash) ([]byte, error) { return chunk, nil })
		if err != nil {
			return
		}
		for i, h := range m.Chunks {
			if p := img.Page(i); p == nil != (h == Hash{}) || p != nil && hashOf(p) != h {
				t.Errorf("chunk %d is not what was asked for", i)
			}
		}
		img.Release()
		if s.Stats().Chunks != 0 {
			t.Error("chunks are left")
		}
	})
}

func TestStoreIsSafeForConcurrentUse(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		base := capture(t, s, "abcdef", nil)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 30 {
					spec := fmt.Sprintf("ab%cd%c.%c", 'a'+i%7, 'a'+g, 'a'+(i+g)%5)
					img := capture(t, s, spec, base)
					if !bytes.Equal(bytesOf(img), content(spec)) {
						t.Errorf("%q is captured wrongly", spec)
					}
					img.Release()
				}
			})
		}
		wg.Wait()
		base.Release()
	})
}

func TestAStoreKeepsNoMoreThanItsLimit(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		s.limit = 4 * ChunkSize
		first := capture(t, s, "ab.c", nil)
		_, err := s.Capture(State{Memory: content("ab.cde")}, first)
		limit, ok := errors.AsType[*LimitError](err)
		if !ok || limit.Limit != 4*ChunkSize || limit.Want != 5*ChunkSize {
			t.Fatalf("%v, want a LimitError", err)
		}
		if n := s.Stats().Chunks; n != 3 {
			t.Errorf("%d chunks are kept, want those of the first image", n)
		}
		second := capture(t, s, "ab.cd", first) // what is shared counts once
		first.Release()
		second.Release()
	})
}

func TestUseAfterTheLastReleasePanics(t *testing.T) {
	s, err := NewStore(Options{Heap: true})
	if err != nil {
		t.Fatal(err)
	}
	img := capture(t, s, "a", nil)
	img.Release()
	for name, f := range map[string]func(){"Release": img.Release, "Retain": func() { img.Retain() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s after the last Release went unnoticed", name)
				}
			}()
			f()
		}()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Capture(State{Memory: content("a")}, nil); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
