package image

import (
	"fmt"

	"github.com/quern-project/quern/wasmhost/linearmem"
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
	if runs(img.places) <= s.maxRuns {
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
		img.places[i] = linearmem.Zero
		if c != nil {
			img.places[i] = c.place
		}
	}
}

// runs counts the mappings that places need.
func runs(places []uint32) int {
	n := 0
	for i, p := range places {
		if p != linearmem.Zero && (i == 0 || places[i-1] == linearmem.Zero || places[i-1]+1 != p) {
			n++
		}
	}
	return n
}

// compact copies chunks to consecutive new places and makes them refer to the
// copies. A chunk that occurs twice gets two places, or it would break the run.
// Other images go on with the old ones.
func (s *Store) compact(chunks []*chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	first, used := s.end, uint32(0)
	fresh := make([]*chunk, len(chunks))
	place := func(i int) {
		c := &chunk{place: first + used, refs: 1}
		if !chunks[i].zeros() {
			c.hash, c.data = chunks[i].hash, chunks[i].data
		}
		fresh[i] = c
		used++
	}
	for i := 0; i < len(chunks); {
		if !chunks[i].zeros() {
			place(i)
			i++
			continue
		}
		gap := i
		for i < len(chunks) && chunks[i].zeros() {
			i++
		}
		if gap > 0 && i < len(chunks) && i-gap <= fillGap {
			for ; gap < i; gap++ {
				place(gap)
			}
		}
	}
	s.end += used
	for _, c := range fresh {
		if c.zeros() {
			continue
		}
		kept, err := s.pool.put(c.place, c.data)
		if err != nil {
			places := make([]uint32, used)
			for i := range places {
				places[i] = first + uint32(i)
			}
			_ = s.giveBack(places)
			return err
		}
		c.data = kept
	}
	var free []uint32
	for i, c := range fresh {
		free = s.unref(chunks[i], free)
		chunks[i] = c
		if !c.zeros() {
			s.byHash[c.hash] = c
			s.kept++
		}
	}
	return s.giveBack(free)
}
