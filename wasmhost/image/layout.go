package image

import (
	"fmt"

	"github.com/quern-project/quern/wasmhost/memory"
)

// An image is mapped in runs: stretches of chunks that lie one after the other
// in the file. Each is a system call when a slot turns to the image, and an
// entry of the process's list of mappings, which is limited (65,530 by default
// for all slots together). Images that follow each other fragment, because what
// changed lies elsewhere in the file than what did not.
const (
	// maxRuns is how many runs an image may have before it is written anew in
	// one piece.
	maxRuns = 2048
	// fillGap is the longest stretch of zeros, in chunks, that gets places in the
	// file, where it takes no memory, to join the runs on its two sides.
	fillGap = 64
)

// layOut finds the places of img's chunks, and moves them if they are too
// scattered.
func (s *Store) layOut(img *Image) error {
	img.places = make([]uint32, len(img.chunks))
	img.fillPlaces()
	if runs(img.places) <= maxRuns {
		return nil
	}
	if err := s.compact(img.chunks); err != nil {
		return fmt.Errorf("write a fragmented image in one piece: %w", err)
	}
	img.fillPlaces()
	return nil
}

func (img *Image) fillPlaces() {
	for i, c := range img.chunks {
		img.places[i] = memory.Zero
		if c != nil {
			img.places[i] = c.place
		}
	}
}

// runs counts the mappings that places need.
func runs(places []uint32) int {
	n := 0
	for i, p := range places {
		if p != memory.Zero && (i == 0 || places[i-1] == memory.Zero || places[i-1]+1 != p) {
			n++
		}
	}
	return n
}

// compact copies chunks to consecutive new places and makes them refer to the
// copies. Other images go on with the old ones.
func (s *Store) compact(chunks []*chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	place := s.end
	fresh := make([]*chunk, len(chunks))
	copies := make(map[*chunk]*chunk, len(chunks))
	used := uint32(0)
	next := func(c *chunk) *chunk {
		c.place = place + used
		c.refs = 1
		used++
		return c
	}
	for i := 0; i < len(chunks); {
		c := chunks[i]
		if c != nil && c.data != nil {
			if copies[c] == nil {
				copies[c] = next(&chunk{hash: c.hash, data: c.data})
			} else {
				copies[c].refs++
			}
			fresh[i] = copies[c]
			i++
			continue
		}
		first := i
		for i < len(chunks) && (chunks[i] == nil || chunks[i].data == nil) {
			i++
		}
		if first > 0 && i < len(chunks) && i-first <= fillGap {
			for k := first; k < i; k++ {
				fresh[k] = next(&chunk{})
			}
		}
	}
	s.end += used
	for old, c := range copies {
		kept, err := s.pool.put(c.place, old.data)
		if err != nil {
			all := make([]uint32, used)
			for i := range all {
				all[i] = place + uint32(i)
			}
			_ = s.giveBack(all)
			return err
		}
		c.data = kept
	}
	var free []uint32
	for i, c := range fresh {
		free = s.unref(chunks[i], free)
		chunks[i] = c
		if c != nil && c.data != nil {
			s.byHash[c.hash] = c
		}
	}
	return s.giveBack(free)
}
