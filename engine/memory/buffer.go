package memory

import (
	"fmt"

	"github.com/quern-project/quern/internal/units"
)

// Buffers lie outside Go's heap, so that a buffer's memory is really gone when
// it is freed: a collector that runs when the heap has doubled would make the
// process twice as large as the pool. Freed ones are kept for reuse, as long as
// nobody needs the memory they occupy, because fresh pages cost a fault each.

// pageSize is what buffers are rounded up to.
const pageSize = 4 << 10

// Alloc draws memory as Acquire does and answers a buffer of n bytes with
// undefined content. Its capacity, n rounded up to 4 KiB, is what is drawn. The
// caller owns it until it gives it to Free; a buffer must not be used afterwards.
func (t *Task) Alloc(n int) ([]byte, error) {
	size := RoundUp(n)
	if err := t.Acquire(int64(size)); err != nil {
		return nil, err
	}
	b, err := t.Map(n)
	if err != nil {
		t.Release(int64(size))
		return nil, err
	}
	return b, nil
}

// Free takes back a buffer of Alloc. The slice must start where Alloc's did.
func (t *Task) Free(b []byte) {
	t.Unmap(b)
	t.Release(int64(cap(b)))
}

// Map answers a buffer like Alloc, for memory that the caller has drawn before
// with Acquire: RoundUp(n) bytes.
func (t *Task) Map(n int) ([]byte, error) {
	size := RoundUp(n)
	p := t.pool
	p.mu.Lock()
	b := p.free.take(size)
	p.mu.Unlock()
	if b == nil && size > 0 {
		var err error
		if b, err = mapPages(size); err != nil {
			return nil, fmt.Errorf("task %d: the system refuses a buffer of %s: %w", t.id, units.Bytes(int64(size)), err)
		}
	}
	return b[:n], nil
}

// Unmap takes back a buffer of Map without releasing its memory.
func (t *Task) Unmap(b []byte) {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free.put(b[:cap(b)])
	p.free.shrink(p.size - p.used + int64(cap(b)))
}

// RoundUp is n rounded up to what a buffer of n bytes occupies.
func RoundUp(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// recycler keeps freed buffers by size.
type recycler struct {
	bySize map[int][][]byte
	total  int64 // bytes of all of them
}

func (r *recycler) take(size int) []byte {
	l := r.bySize[size]
	if len(l) == 0 {
		return nil
	}
	b := l[len(l)-1]
	l[len(l)-1] = nil
	r.bySize[size] = l[:len(l)-1]
	r.total -= int64(size)
	return b
}

func (r *recycler) put(b []byte) {
	if cap(b) > 0 {
		r.bySize[cap(b)] = append(r.bySize[cap(b)], b)
		r.total += int64(cap(b))
	}
}

// shrink gives buffers back to the system until at most limit bytes are kept.
func (r *recycler) shrink(limit int64) {
	if r.total <= limit {
		return
	}
	for size, l := range r.bySize {
		for len(l) > 0 && r.total > limit {
			unmapPages(l[len(l)-1])
			l[len(l)-1] = nil
			l = l[:len(l)-1]
			r.total -= int64(size)
		}
		if len(l) == 0 {
			delete(r.bySize, size)
		} else {
			r.bySize[size] = l
		}
	}
}
