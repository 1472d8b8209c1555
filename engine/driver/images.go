package driver

import (
	"fmt"
	"sync"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/wasmhost/image"
)

// images holds the application's captured images until dag says that nobody
// needs them any more: neither a job nor a shuffle whose map tasks ran in one.
type images struct {
	mu   sync.Mutex
	last msg.ImageID
	held map[msg.ImageID]*image.Image // each with one reference of ours
}

// add takes over the caller's reference to img.
func (s *images) add(img *image.Image) msg.ImageID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(map[msg.ImageID]*image.Image)
	}
	s.last++
	s.held[s.last] = img
	return s.last
}

// drop releases an image.
func (s *images) drop(id msg.ImageID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if img := s.held[id]; img != nil {
		delete(s.held, id)
		img.Release()
	}
}

// get answers an image with a reference for the caller to release.
func (s *images) get(id msg.ImageID) (*image.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	img := s.held[id]
	if img == nil {
		return nil, fmt.Errorf("image %d is gone: its job has ended", id)
	}
	img.Retain()
	return img, nil
}

// close releases all.
func (s *images) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, img := range s.held {
		img.Release()
	}
	clear(s.held)
}
