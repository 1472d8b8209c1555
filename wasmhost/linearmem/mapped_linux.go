package linearmem

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped keeps a memory in a reserved range of addresses. Pages of the loaded
// source are mapped privately from its file, the others are anonymous. What a
// guest writes are private copies that MADV_DONTNEED drops.
type mapped struct {
	all        []byte // the whole reservation
	accessible int64  // bytes from the start that can be read and written
	places     []uint32
	fd         int // of the file that places speak of
	src        Source
	dirty      *dirtyPages // nil: unknown
	reloads    int
}

// growth is the step in bytes by which addresses are made accessible.
const growth = 1 << 20

func newMapped(max int64) (backing, error) {
	all, err := unix.Mmap(-1, 0, int(max), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &mapped{all: all, dirty: newDirtyPages()}, nil
}

func (m *mapped) grow(size int64) ([]byte, error) {
	if size > m.accessible {
		to := min((size+growth-1)/growth*growth, int64(len(m.all)))
		if err := unix.Mprotect(m.all[m.accessible:to], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil, fmt.Errorf("make %d bytes accessible: %w", to, err)
		}
		m.accessible = to
	}
	return m.all[:size:size], nil
}

func (m *mapped) load(src Source, used int64) ([]byte, error) {
	places, fd := src.Places(), src.File()
	if fd < 0 {
		return nil, errors.New("the image's store keeps it in ordinary memory, which cannot be mapped")
	}
	if err := m.drop(used); err != nil {
		return nil, err
	}
	b, err := m.grow(int64(len(places)) * PageSize)
	if err != nil {
		return nil, err
	}
	// Only what differs from the last source is mapped anew: two images of one
	// driver share most of their pages.
	if fd != m.fd {
		if err := m.remap(0, len(m.places), Zero, -1); err != nil {
			return nil, err
		}
		m.places, m.fd = m.places[:0], fd
	}
	n := max(len(places), len(m.places))
	for i := 0; i < n; {
		if at(places, i) == at(m.places, i) {
			i++
			continue
		}
		first, place := i, at(places, i)
		for i++; i < n && at(places, i) != at(m.places, i); i++ {
			if place == Zero && at(places, i) != Zero || place != Zero && at(places, i) != place+uint32(i-first) {
				break
			}
		}
		if err := m.remap(first, i-first, place, fd); err != nil {
			return nil, err
		}
	}
	m.places = append(m.places[:0], places...)
	m.src = src
	return b, nil
}

func at(places []uint32, i int) uint32 {
	if i < len(places) {
		return places[i]
	}
	return Zero
}

// remap maps n pages from page first on to the file's pages from place on, or to
// nothing but zeros.
func (m *mapped) remap(first, n int, place uint32, fd int) error {
	if n == 0 {
		return nil
	}
	flags, offset := unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE, int64(0)
	if place == Zero {
		fd, flags = -1, flags|unix.MAP_ANON
	} else {
		offset = int64(place) * PageSize
	}
	_, err := unix.MmapPtr(fd, offset, unsafe.Pointer(&m.all[first*PageSize]), uintptr(n)*PageSize,
		unix.PROT_READ|unix.PROT_WRITE, flags)
	if errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("map %d pages: %w (too many mappings? see vm.max_map_count)", n, err)
	}
	if err != nil {
		return fmt.Errorf("map %d pages: %w", n, err)
	}
	return nil
}

func (m *mapped) reload(used int64) ([]byte, error) {
	if !m.writeBack(used) {
		if err := m.drop(used); err != nil {
			return nil, err
		}
	}
	n := len(m.places) * PageSize
	return m.all[:n:n], nil
}

// writeBack gives the pages of the first used bytes that were written the content
// that they had. It answers false if that is not possible or not worth while.
func (m *mapped) writeBack(used int64) bool {
	if m.reloads++; m.dirty == nil || m.reloads%dropEvery == 0 {
		return false
	}
	regions, ok := m.dirty.find(m.all[:used])
	if !ok {
		return false
	}
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.all))))
	for _, r := range regions {
		for at, end := r.start-base, r.end-base; at < end; at += smallPage {
			to := m.all[at : at+smallPage]
			var from []byte
			if i := int(at / PageSize); i < len(m.places) {
				from = m.src.Page(i)
			}
			if from == nil {
				clear(to)
			} else {
				copy(to, from[at%PageSize:])
			}
		}
	}
	return true
}

// drop throws away what was written to the first used bytes.
func (m *mapped) drop(used int64) error {
	if used == 0 {
		return nil
	}
	if err := unix.Madvise(m.all[:used], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("drop written pages: %w", err)
	}
	return nil
}

func (m *mapped) close() error {
	if m.all == nil {
		return nil
	}
	err := unix.Munmap(m.all)
	if m.dirty != nil {
		err = errors.Join(err, m.dirty.close())
	}
	*m = mapped{}
	return err
}
