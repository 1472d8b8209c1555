package image

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// filePool keeps chunks in a memfd, of which it maps one segment after the
// other for reading.
type filePool struct {
	fd       int
	segments [][]byte // of segmentSize bytes each
}

const (
	segmentChunks = 1024
	segmentSize   = segmentChunks * ChunkSize // 64 MiB
)

func newFilePool() (pool, error) {
	fd, err := unix.MemfdCreate("quern-images", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return &filePool{fd: fd}, nil
}

func (p *filePool) put(place uint32, chunk []byte) ([]byte, error) {
	for int(place/segmentChunks) >= len(p.segments) {
		offset := int64(len(p.segments)) * segmentSize
		if err := unix.Ftruncate(p.fd, offset+segmentSize); err != nil {
			return nil, fmt.Errorf("enlarge the memfd to %d bytes: %w", offset+segmentSize, err)
		}
		seg, err := unix.Mmap(p.fd, offset, segmentSize, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("map %d bytes of the memfd: %w", segmentSize, err)
		}
		p.segments = append(p.segments, seg)
	}
	// Writing by system call fills whole pages, which the kernel then need not
	// clear first, without a page fault for each.
	for done := 0; done < ChunkSize; {
		n, err := unix.Pwrite(p.fd, chunk[done:], int64(place)*ChunkSize+int64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("write to the memfd: %w", err)
		}
		done += n
	}
	at := int(place%segmentChunks) * ChunkSize
	return p.segments[place/segmentChunks][at : at+ChunkSize : at+ChunkSize], nil
}

func (p *filePool) free(first, n uint32) error {
	err := unix.Fallocate(p.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
		int64(first)*ChunkSize, int64(n)*ChunkSize)
	if err != nil {
		return fmt.Errorf("give back %d chunks of the memfd: %w", n, err)
	}
	return nil
}

func (p *filePool) file() int { return p.fd }

func (p *filePool) close() error {
	var errs error
	for _, seg := range p.segments {
		errs = errors.Join(errs, unix.Munmap(seg))
	}
	p.segments = nil
	return errors.Join(errs, unix.Close(p.fd))
}
