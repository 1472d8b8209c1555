// Package image keeps the captured states of guests. An [Image] is a linear
// memory, the values of the mutable globals and the reading of the monotonic
// clock at one moment: all that a clone of the guest needs to go on from there.
//
// The memory is cut into chunks of 64 KiB. A [Store] keeps each distinct chunk
// once, and chunks of zeros not at all; images refer to chunks and count their
// references. So the second image of a driver costs what has changed since the
// first. On Linux the store is a memfd, which [linearmem.LinearMemory] maps
// copy-on-write: all clones of all images share one copy of the bytes. A chunk
// never changes, and its place in the file is not reused before the last image
// that refers to it is released.
//
// Chunks are named by a hash of their content ([Hash]); a [Manifest] lists an
// image by those names, and [Store.Assemble] makes the image again from a
// manifest and chunks that came from elsewhere.
package image

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/quern-project/quern/wasmhost/linearmem"
)

// ChunkSize is the size of a chunk in bytes.
const ChunkSize = linearmem.PageSize

// Hash names a chunk by its content: XXH3-128, big-endian. The zero value is
// the chunk of zeros. It guards against mistakes, not against an adversary.
type Hash [16]byte

func hashOf(chunk []byte) Hash { return xxh3.Hash128(chunk).Bytes() }

// Options say how a store keeps its chunks.
type Options struct {
	// Heap keeps them in ordinary memory, so that images are copied instead of
	// mapped. It is always so on other systems than Linux.
	Heap bool
	// Limit is how many bytes of chunks a store keeps; 0 is no limit.
	Limit int64
}

// LimitError says that an image has no room in its store.
type LimitError struct {
	Limit, Want int64 // bytes of chunks: what the store may keep, and would with the image
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("images of memory take %d bytes, the limit is %d", e.Want, e.Limit)
}

// pool keeps chunks at numbered places.
type pool interface {
	// put copies chunk to place and returns the kept copy.
	put(place uint32, chunk []byte) ([]byte, error)
	// free forgets the n places from first on, some of which may be empty.
	free(first, n uint32) error
	// file is the file's descriptor, or -1.
	file() int
	close() error
}

// chunk is one chunk in a store.
type chunk struct {
	hash  Hash
	data  []byte // nil: zeros, which keep a place only to fill a gap
	place uint32
	refs  int // images that refer to it, each occurrence counts
}

// zeros says whether the chunk, which may be nil, is all zeros.
func (c *chunk) zeros() bool { return c == nil || c.data == nil }

// Store keeps chunks. It is safe for concurrent use.
type Store struct {
	pool pool

	mu     sync.Mutex
	byHash map[Hash]*chunk
	end    uint32   // places from here on were never used
	gaps   []uint32 // unused places below end, ascending
	kept   int      // chunks that are not zeros
	closed bool

	limit   int64 // bytes; 0: none
	maxRuns int   // see layout.go
}

// NewStore makes an empty store. Close it when all its images are released and
// no memory is loaded with one any more.
func NewStore(o Options) (*Store, error) {
	s := &Store{byHash: make(map[Hash]*chunk), limit: o.Limit, maxRuns: maxRuns}
	if o.Heap || !linearmem.MappedSupported {
		s.pool = &heapPool{}
		return s, nil
	}
	p, err := newFilePool()
	if err != nil {
		return nil, fmt.Errorf("create a store for images: %w", err)
	}
	s.pool = p
	return s, nil
}

// Close gives back all memory. Chunks and images must not be used any more.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.byHash = nil
	return s.pool.close()
}

// Stats says what a store holds.
type Stats struct {
	Chunks int   // chunks that are not zeros
	Bytes  int64 // their size
}

// Stats says what the store holds.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Chunks: s.kept, Bytes: int64(s.kept) * ChunkSize}
}

var (
	errClosed    = errors.New("the store of images is closed")
	errCollision = errors.New("two different chunks of memory have the same hash")
)

// allocate takes n places, as few runs as can be had without waste: gaps in
// ascending order first. The caller holds mu.
func (s *Store) allocate(n int) []uint32 {
	places := make([]uint32, 0, n)
	k := min(n, len(s.gaps))
	places = append(places, s.gaps[:k]...)
	s.gaps = slices.Delete(s.gaps, 0, k)
	for len(places) < n {
		places = append(places, s.end)
		s.end++
	}
	return places
}

// giveBack makes places available again. The caller holds mu.
func (s *Store) giveBack(places []uint32) error {
	if len(places) == 0 {
		return nil
	}
	slices.Sort(places)
	var errs error
	for i := 0; i < len(places); {
		first := i
		for i++; i < len(places) && places[i] == places[i-1]+1; i++ {
		}
		errs = errors.Join(errs, s.pool.free(places[first], uint32(i-first)))
	}
	s.gaps = append(s.gaps, places...)
	slices.Sort(s.gaps)
	return errs
}

// want is a chunk to be added to an image under construction.
type want struct {
	index int // in the image
	data  []byte
	hash  Hash
}

// add finds or keeps the wanted chunks and enters them into chunks, with one
// reference each. wants is ascending by index. After an error nothing is kept.
func (s *Store) add(chunks []*chunk, wants []want) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	var fresh []*chunk
	undo := func() {
		var places []uint32
		for _, w := range wants {
			places = s.unref(chunks[w.index], places)
			chunks[w.index] = nil
		}
		_ = s.giveBack(places)
	}
	for _, w := range wants {
		c := s.byHash[w.hash]
		if c == nil {
			c = &chunk{hash: w.hash, data: w.data, place: linearmem.Zero}
			s.byHash[w.hash] = c
			fresh = append(fresh, c)
		} else if !bytes.Equal(c.data, w.data) {
			undo()
			return errCollision
		}
		c.refs++
		chunks[w.index] = c
	}
	if want := int64(s.kept+len(fresh)) * ChunkSize; s.limit > 0 && want > s.limit {
		undo()
		return &LimitError{Limit: s.limit, Want: want}
	}
	for i, place := range s.allocate(len(fresh)) {
		fresh[i].place = place
	}
	s.kept += len(fresh)
	for _, c := range fresh {
		kept, err := s.pool.put(c.place, c.data)
		if err != nil {
			undo()
			return fmt.Errorf("keep a chunk of memory: %w", err)
		}
		c.data = kept
	}
	return nil
}

// unref takes one reference from c and appends its place to free if it was the
// last. The caller holds mu.
func (s *Store) unref(c *chunk, free []uint32) []uint32 {
	if c == nil {
		return free
	}
	if c.refs--; c.refs > 0 {
		return free
	}
	if !c.zeros() && s.byHash[c.hash] == c {
		delete(s.byHash, c.hash)
	}
	if c.place != linearmem.Zero {
		free = append(free, c.place)
		if !c.zeros() {
			s.kept--
		}
	}
	return free
}

// Mapped says whether memories can map the store's images, rather than copy them.
func (s *Store) Mapped() bool { return s.pool.file() >= 0 }
