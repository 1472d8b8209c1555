package image

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quern-project/quern/wasmhost/linearmem"
)

// Image is a captured guest. It is immutable, and safe for concurrent use. It
// is born with one reference; the last Release gives its chunks back.
type Image struct {
	store   *Store
	chunks  []*chunk // nil: zeros without a place
	places  []uint32
	globals []uint64
	clock   int64
	made    time.Time
	refs    atomic.Int64
}

// State is what is captured of a guest.
type State struct {
	// Memory is the linear memory; its length is a multiple of ChunkSize.
	Memory []byte
	// Globals are the raw values of the mutable globals, in the program's order.
	Globals []uint64
	// Clock is the reading of the guest's monotonic clock in nanoseconds.
	Clock int64
}

// Capture makes an image of st. prev is an earlier image of the same guest, or
// nil: chunks that have not changed since are found by comparing bytes alone,
// which is several times faster than hashing them. Nothing of st is kept.
func (s *Store) Capture(st State, prev *Image) (*Image, error) {
	if len(st.Memory)%ChunkSize != 0 {
		return nil, fmt.Errorf("capture a memory of %d bytes: not a multiple of %d", len(st.Memory), ChunkSize)
	}
	if prev != nil && prev.store != s {
		prev = nil
	}
	img := s.newImage(len(st.Memory)/ChunkSize, st.Globals, st.Clock)
	var wants []want
	for i := range img.chunks {
		data := st.Memory[i*ChunkSize : (i+1)*ChunkSize : (i+1)*ChunkSize]
		if prev != nil && i < len(prev.chunks) {
			c := prev.chunks[i]
			if c.zeros() {
				if isZero(data) {
					img.chunks[i] = c
					continue
				}
			} else if bytes.Equal(data, c.data) {
				img.chunks[i] = c
				continue
			}
		}
		if !isZero(data) {
			wants = append(wants, want{index: i, data: data, hash: hashOf(data)})
		}
	}
	return s.finish(img, wants)
}

func (s *Store) newImage(chunks int, globals []uint64, clock int64) *Image {
	img := &Image{
		store:   s,
		chunks:  make([]*chunk, chunks),
		globals: append([]uint64(nil), globals...),
		clock:   clock,
		made:    time.Now(),
	}
	img.refs.Store(1)
	return img
}

// finish takes a reference to each chunk that img refers to already, adds the
// wanted ones and lays the places out.
func (s *Store) finish(img *Image, wants []want) (*Image, error) {
	s.mu.Lock()
	for _, c := range img.chunks {
		if c != nil {
			c.refs++
		}
	}
	s.mu.Unlock()
	if err := s.add(img.chunks, wants); err != nil {
		img.Release()
		return nil, err
	}
	if err := s.layOut(img); err != nil {
		img.Release()
		return nil, err
	}
	return img, nil
}

// Retain takes another reference.
func (img *Image) Retain() *Image {
	if img.refs.Add(1) <= 1 {
		img.refs.Add(-1)
		panic("image: Retain after the last Release")
	}
	return img
}

// Release gives a reference back. After the last one the image must not be used.
func (img *Image) Release() {
	switch n := img.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		img.refs.Add(1)
		panic("image: Release after the last Release")
	}
	s := img.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	var free []uint32
	for _, c := range img.chunks {
		free = s.unref(c, free)
	}
	// A hole that cannot be punched costs memory until the store closes; there
	// is nobody to tell.
	_ = s.giveBack(free)
}

// Len is the memory's length in bytes.
func (img *Image) Len() int64 { return int64(len(img.chunks)) * ChunkSize }

// Resident is the size in bytes of the chunks that are not zeros.
func (img *Image) Resident() int64 {
	n := int64(0)
	for _, c := range img.chunks {
		if !c.zeros() {
			n += ChunkSize
		}
	}
	return n
}

// Globals are the values of the mutable globals. They must not be changed.
func (img *Image) Globals() []uint64 { return img.globals }

// Clock is what the guest's monotonic clock shows now in nanoseconds, had it
// gone on since the image was made.
func (img *Image) Clock() int64 { return img.clock + int64(time.Since(img.made)) }

// Places implements linearmem.Source.
func (img *Image) Places() []uint32 { return img.places }

// File implements linearmem.Source.
func (img *Image) File() int { return img.store.pool.file() }

// Page implements linearmem.Source: the content of chunk i, or nil if it is zeros.
// It must not be changed, and is valid until the last Release.
func (img *Image) Page(i int) []byte {
	if c := img.chunks[i]; c != nil {
		return c.data
	}
	return nil
}

// Manifest lists an image by the names of its chunks.
type Manifest struct {
	Chunks  []Hash   `cbor:"1,keyasint"` // the zero value for a chunk of zeros
	Globals []uint64 `cbor:"2,keyasint"`
	Clock   int64    `cbor:"3,keyasint"`
}

// Manifest lists the image. Its chunks are read with Page.
func (img *Image) Manifest() Manifest {
	m := Manifest{Chunks: make([]Hash, len(img.chunks)), Globals: img.globals, Clock: img.Clock()}
	for i, c := range img.chunks {
		if !c.zeros() {
			m.Chunks[i] = c.hash
		}
	}
	return m
}

// Assemble makes the image that m lists. fetch is asked for each chunk that the
// store does not hold, once, and answers its content, which is checked and not
// kept. The guest's monotonic clock goes on from the time of the call.
func (s *Store) Assemble(m Manifest, fetch func(index int, h Hash) ([]byte, error)) (*Image, error) {
	if len(m.Chunks) > linearmem.MaxPages {
		return nil, fmt.Errorf("assemble an image of %d chunks: more than 4 GiB", len(m.Chunks))
	}
	img := s.newImage(len(m.Chunks), m.Globals, m.Clock)
	for i, h := range m.Chunks {
		if h == (Hash{}) {
			continue
		}
		if err := s.assembleChunk(img, i, h, fetch); err != nil {
			img.Release()
			return nil, fmt.Errorf("assemble an image: chunk %d of %d (%x): %w", i, len(m.Chunks), h, err)
		}
	}
	if err := s.layOut(img); err != nil {
		img.Release()
		return nil, err
	}
	return img, nil
}

func (s *Store) assembleChunk(img *Image, i int, h Hash, fetch func(int, Hash) ([]byte, error)) error {
	s.mu.Lock()
	c := s.byHash[h]
	if c != nil {
		c.refs++
		img.chunks[i] = c
	}
	s.mu.Unlock()
	if c != nil {
		return nil
	}
	data, err := fetch(i, h)
	if err != nil {
		return err
	}
	if len(data) != ChunkSize {
		return fmt.Errorf("received %d bytes instead of %d", len(data), ChunkSize)
	}
	if hashOf(data) != h {
		return errContent
	}
	return s.add(img.chunks, []want{{index: i, data: data, hash: h}})
}

var _ linearmem.Source = (*Image)(nil)

func isZero(b []byte) bool { return bytes.Equal(b, zeros[:]) }

var zeros [ChunkSize]byte

var errContent = errors.New("the content received does not have this hash")
