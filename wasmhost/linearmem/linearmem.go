// Package linearmem gives guests their linear memory. A [LinearMemory] is handed
// to wazero through its experimental.MemoryAllocator and does three things an
// ordinary buffer does not:
//
//   - It loads an image (a [Source]) as its content, and loads it again for the
//     next run, throwing away what the guest wrote. On Linux the image is
//     mapped copy-on-write, so that loading costs what the last run touched and
//     not what the image holds; elsewhere it is copied.
//   - It becomes shorter again, which a WebAssembly memory never does by itself.
//   - It asks before it grows: a limit in bytes and a hook ([Limit]). A refusal
//     makes the guest's memory.grow answer -1 and is remembered ([Refusal]), so
//     that whoever sees the guest die of it can say why.
//
// The life of a memory is [New], then any number of [LinearMemory.Load],
// [LinearMemory.Begin], a run of the guest, [LinearMemory.Reset].
//
// A memory belongs to one goroutine at a time. Nothing is unmapped before
// [LinearMemory.Close], whatever wazero frees and when: taking pages away under
// a running guest would kill the process beyond recovery.
package linearmem

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// PageSize is the size in bytes of a WebAssembly page, and of an image's chunk.
const PageSize = 64 << 10

// MaxPages is the largest number of pages of a memory: 4 GiB.
const MaxPages = 1 << 16

// Zero is the place of a page that is all zeros and lies in no file.
const Zero = ^uint32(0)

// Source is what a memory can be loaded with. It must not change, and must
// stay alive until the memory is loaded with another source or closed.
type Source interface {
	// Places says where each page of the memory lies in File, counted in pages
	// from the file's start, or Zero. Its length is the memory's length in pages.
	Places() []uint32
	// File is the file descriptor that Places speaks of, or -1 if the source is
	// in ordinary memory and can only be copied.
	File() int
	// Page is the content of page i, or nil if it is all zeros.
	Page(i int) []byte
}

// Limit bounds a memory.
type Limit struct {
	// Bytes is the length the memory must not exceed.
	Bytes int64
	// Grow, if not nil, is asked before each growth by delta > 0 bytes. An error
	// refuses it. It is called on the goroutine of the guest.
	Grow func(delta int64) error
}

// Refusal is a growth that was refused.
type Refusal struct {
	Limit int64 // Limit.Bytes at that time
	Use   int64 // the memory's length in bytes
	Delta int64 // the bytes that were wanted in addition
	Cause error // what Limit.Grow answered; nil if the limit itself was reached
}

// Grower is a wazero memory: the part of its api.Memory that is needed here.
type Grower interface {
	Grow(deltaPages uint32) (previousPages uint32, ok bool)
}

// backing is how the bytes are kept: mapped or copied.
type backing interface {
	// grow makes the first size bytes accessible, those that are new zero.
	grow(size int64) ([]byte, error)
	// load makes the content equal to src, whatever was there, and everything
	// beyond zero. At most the first used bytes were written since the last load.
	load(src Source, used int64) ([]byte, error)
	// reload does the same with the source that was loaded last.
	reload(used int64) ([]byte, error)
	close() error
}

// LinearMemory is the memory of one instance. It implements wazero's
// experimental.LinearMemory.
type LinearMemory struct {
	back    backing
	bytes   []byte // what the guest sees
	used    int64  // largest length since the guest last began, 0 if it did not since Reset
	max     int64
	limit   Limit
	refusal *Refusal
	src     Source
	forced  []byte // if not nil, what the next Reallocate answers
	created bool   // by the first Reallocate
}

// New makes an empty memory of at most max bytes, which must be a positive
// multiple of PageSize up to 4 GiB. The address range is reserved at once, so
// that the memory never moves; it takes no memory until it is used. With
// copying, which is the only way on other systems than Linux, images are copied
// and growth may move the memory.
func New(max int64, copying bool) (*LinearMemory, error) {
	if max <= 0 || max%PageSize != 0 || max > MaxPages*PageSize {
		return nil, fmt.Errorf("linear memory of %d bytes: want a positive multiple of %d up to 4 GiB", max, PageSize)
	}
	m := &LinearMemory{max: max, limit: Limit{Bytes: max}}
	if copying || !MappedSupported {
		m.back = &copied{}
		return m, nil
	}
	back, err := newMapped(max)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space for a linear memory: %w", max, err)
	}
	m.back = back
	return m, nil
}

// Begin says that the guest is going to run: it bounds further growth and
// forgets an earlier refusal. The length that the memory has already is not
// questioned.
func (m *LinearMemory) Begin(l Limit) {
	m.limit = l
	m.refusal = nil
	m.used = m.Len()
}

// Refused is the first growth refused since Begin, or nil.
func (m *LinearMemory) Refused() *Refusal { return m.refusal }

// Bytes is the memory as the guest sees it. It is valid until the memory grows,
// is loaded or closed.
func (m *LinearMemory) Bytes() []byte { return m.bytes }

// Len is the memory's length in bytes.
func (m *LinearMemory) Len() int64 { return int64(len(m.bytes)) }

// Reallocate implements experimental.LinearMemory. It answers nil if the growth
// is refused. The first call, by which wazero creates the memory, is bounded by
// the maximum alone.
func (m *LinearMemory) Reallocate(size uint64) []byte {
	if m.forced != nil {
		return m.forced
	}
	delta := int64(size) - m.Len()
	if size > uint64(m.max) || m.created && int64(size) > m.limit.Bytes {
		m.refuse(delta, nil)
		return nil
	}
	if m.created && m.limit.Grow != nil && delta > 0 {
		if err := m.limit.Grow(delta); err != nil {
			m.refuse(delta, err)
			return nil
		}
	}
	b, err := m.back.grow(int64(size))
	if err != nil {
		m.refuse(delta, err)
		return nil
	}
	m.bytes, m.created = b, true
	m.used = max(m.used, int64(size))
	return b
}

func (m *LinearMemory) refuse(delta int64, cause error) {
	if m.refusal == nil {
		m.refusal = &Refusal{Limit: min(m.limit.Bytes, m.max), Use: m.Len(), Delta: delta, Cause: cause}
	}
}

// Load makes the memory's content and length those of src and throws away what
// was written before. guest is the wazero memory that m backs, which is told
// of the new length. The guest must not be running. After an error the content
// is undefined and the memory can only be closed.
func (m *LinearMemory) Load(src Source, guest Grower) error {
	if src == m.src {
		return m.Reset(guest)
	}
	if n := int64(len(src.Places())) * PageSize; n > m.max || n == 0 {
		return fmt.Errorf("load an image of %d bytes into a linear memory of at most %d bytes", n, m.max)
	}
	m.src = nil
	b, err := m.back.load(src, m.used)
	if err != nil {
		return fmt.Errorf("load an image into a linear memory: %w", err)
	}
	m.src = src
	return m.resize(b, guest)
}

// Reset does the same as Load with the source that was loaded last.
func (m *LinearMemory) Reset(guest Grower) error {
	if m.src == nil {
		return errors.New("reset a linear memory: nothing was loaded")
	}
	if m.used == 0 {
		return nil
	}
	b, err := m.back.reload(m.used)
	if err != nil {
		return fmt.Errorf("reset a linear memory: %w", err)
	}
	return m.resize(b, guest)
}

// resize tells wazero that the memory is b now. wazero's memories only grow. The
// way to make one shorter is a growth by one page during which Reallocate
// answers something else; for that the memory's declared maximum must be at
// least one page above the max of New, unless the length never changes.
func (m *LinearMemory) resize(b []byte, guest Grower) error {
	m.used = 0
	if len(b) == len(m.bytes) && unsafe.SliceData(b) == unsafe.SliceData(m.bytes) {
		return nil
	}
	m.forced = b
	_, ok := guest.Grow(1)
	m.forced = nil
	if !ok {
		return errors.New("change the length of a linear memory: wazero refused, its maximum is reached")
	}
	m.bytes = b
	return nil
}

// Free implements experimental.LinearMemory and does nothing: wazero calls it
// when an instance closes, which proc_exit does in the middle of a call.
func (m *LinearMemory) Free() {}

// Close gives everything back. The guest must not be running.
func (m *LinearMemory) Close() error {
	m.bytes, m.src = nil, nil
	if err := m.back.close(); err != nil {
		return fmt.Errorf("release a linear memory: %w", err)
	}
	return nil
}

// MappedSupported says whether this system maps images instead of copying them.
const MappedSupported = runtime.GOOS == "linux"
