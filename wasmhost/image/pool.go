package image

// heapPool keeps chunks in ordinary memory.
type heapPool struct {
	chunks [][]byte // by place
}

func (p *heapPool) put(place uint32, chunk []byte) ([]byte, error) {
	for int(place) >= len(p.chunks) {
		p.chunks = append(p.chunks, nil)
	}
	kept := append(make([]byte, 0, ChunkSize), chunk...)
	p.chunks[place] = kept
	return kept, nil
}

func (p *heapPool) free(first, n uint32) error {
	for i := first; i < first+n && int(i) < len(p.chunks); i++ {
		p.chunks[i] = nil
	}
	return nil
}

func (p *heapPool) file() int { return -1 }

func (p *heapPool) close() error {
	p.chunks = nil
	return nil
}
