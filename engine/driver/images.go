package driver

import (
	"fmt"
	"sync"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/wasmhost/image"
)

// images holds the application's captured images while somebody may need them:
// the job that was captured, and every shuffle whose map tasks ran in it.
type images struct {
	mu   sync.Mutex
	last msg.ImageID
	held map[msg.ImageID]*heldImage
}

type heldImage struct {
	image *image.Image // with one reference of ours
	refs  int
}

// add takes over the caller's reference to img, as the first hold on it.
func (s *images) add(img *image.Image) msg.ImageID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(map[msg.ImageID]*heldImage)
	}
	s.last++
	s.held[s.last] = &heldImage{image: img, refs: 1}
	return s.last
}

// hold adds to the holds on an image.
func (s *images) hold(id msg.ImageID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[id]; h != nil {
		h.refs++
	}
}

// drop ends one hold; the last one releases the image.
func (s *images) drop(id msg.ImageID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[id]
	if h == nil {
		return
	}
	if h.refs--; h.refs == 0 {
		delete(s.held, id)
		h.image.Release()
	}
}

// get answers an image with a reference for the caller to release.
func (s *images) get(id msg.ImageID) (*image.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[id]
	if h == nil {
		return nil, fmt.Errorf("image %d is gone: its job has ended", id)
	}
	h.image.Retain()
	return h.image, nil
}

// close releases all.
func (s *images) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, h := range s.held {
		h.image.Release()
		delete(s.held, id)
	}
}
