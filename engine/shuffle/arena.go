package shuffle

import (
	"slices"
	"unsafe"

	"github.com/quern-project/quern/engine/memory"
)

// arena holds a map task's records until they are written or spilled, and an
// index of them. All its memory is the task's, and none is in Go's heap.
type arena struct {
	mem *memory.Task

	// Addresses are cut into slots of slotSize. Slot i begins in slots[i], which
	// goes on to the end of its chunk. A chunk occupies whole slots.
	slots [][]byte
	used  [][]byte // chunks with records
	free  [][]byte // chunks without: kept, because what was needed once is needed again
	room  []byte   // what is left of the last chunk
	next  uint64   // address of room
	size  int64    // of all chunks

	index []byte // buffer of entries
	entry []entry
	n     int // entries in use
}

const (
	slotBits  = 20
	slotSize  = 1 << slotBits
	minChunk  = 64 << 10
	maxChunk  = 4 << 20
	minIndex  = 2048
	entrySize = int(unsafe.Sizeof(entry{}))
	// maxEntries keeps counts in 32 bits.
	maxEntries = 1 << 31
)

// at answers the memory from an address to the end of its chunk.
func (a *arena) at(address uint64) []byte {
	return a.slots[address>>slotBits][address&(slotSize-1):]
}

// full says whether records must be spilled because addresses or counts run
// out, whatever memory there is.
func (a *arena) full(bytes, entries int) bool {
	slots := uint64(len(a.slots)) + uint64(max(bytes, maxChunk))>>slotBits + 1
	return slots > 1<<(addressBits-slotBits) || a.n+entries > maxEntries
}

// growth is what a request needs beyond what the arena holds.
type growth struct {
	chunk int // bytes of a new chunk, 0 for none
	index int // entries of a new index, 0 for none
}

// grow says how to make room. A frugal growth is the smallest possible one.
func (a *arena) grow(bytes, entries int, frugal bool) growth {
	var g growth
	if len(a.room) < bytes && a.reusable(bytes) < 0 {
		g.chunk = memory.RoundUp(bytes)
		if !frugal {
			want := minChunk
			for want < maxChunk && int64(want)*4 < a.size {
				want *= 2
			}
			g.chunk = max(g.chunk, want)
		}
	}
	if need := a.n + entries; need > len(a.entry) {
		g.index = need
		if !frugal {
			g.index = max(minIndex, need, 2*len(a.entry))
		}
		g.index = memory.RoundUp(g.index*entrySize) / entrySize
	}
	return g
}

// cost is the memory that the growth draws. The index counts twice, because
// sorting needs as much again, and when memory has run out it is too late.
func (a *arena) cost(g growth) int64 {
	n := int64(memory.RoundUp(g.chunk))
	if g.index > 0 {
		n += 2 * int64(entrySize) * int64(g.index-len(a.entry))
	}
	return n
}

// apply makes room with memory that was acquired for it.
func (a *arena) apply(g growth) error {
	if g.chunk > 0 {
		b, err := a.mem.Map(g.chunk)
		if err != nil {
			a.mem.Release(a.cost(g))
			return err
		}
		a.free = append(a.free, b)
		a.size += int64(cap(b))
	}
	if g.index > 0 {
		b, err := a.mem.Map(g.index * entrySize)
		if err != nil {
			a.mem.Release(a.cost(growth{index: g.index}))
			return err
		}
		grown := entriesOf(b)
		copy(grown, a.entry[:a.n])
		a.mem.Unmap(a.index)
		a.index, a.entry = b, grown
	}
	return nil
}

// reusable answers which free chunk has room for n bytes, -1 if none has.
func (a *arena) reusable(n int) int {
	for i := len(a.free) - 1; i >= 0; i-- {
		if cap(a.free[i]) >= n {
			return i
		}
	}
	return -1
}

// put copies b to one piece of the arena and answers where. There must be room.
func (a *arena) put(b []byte) (address uint64, stored []byte) {
	if len(a.room) < len(b) {
		i := a.reusable(len(b))
		c := a.free[i]
		c = c[:cap(c)]
		a.free = slices.Delete(a.free, i, i+1)
		a.used = append(a.used, c)
		a.next = uint64(len(a.slots)) << slotBits
		a.room = c
		for at := 0; at < len(c); at += slotSize {
			a.slots = append(a.slots, c[at:])
		}
	}
	address, stored = a.next, a.room
	n := copy(a.room, b)
	a.room = a.room[n:]
	a.next += uint64(n)
	return address, stored
}

// clear forgets all records and keeps the memory.
func (a *arena) clear() {
	a.free = append(a.free, a.used...)
	clear(a.used)
	clear(a.slots)
	a.used, a.slots, a.room = a.used[:0], a.slots[:0], nil
	a.n = 0
}

// shrink frees at least need bytes of what holds no records, if there is as
// much, and answers how much it has freed.
func (a *arena) shrink(need int64) (freed int64) {
	for freed < need && len(a.free) > 0 {
		// The smallest that is enough, or else the last, which is a large one.
		best := len(a.free) - 1
		for i, c := range a.free {
			enough := int64(cap(c)) >= need-freed
			if enough && (cap(c) < cap(a.free[best]) || int64(cap(a.free[best])) < need-freed) {
				best = i
			}
		}
		chunk := a.free[best]
		a.free = slices.Delete(a.free, best, best+1)
		a.size -= int64(cap(chunk))
		freed += int64(cap(chunk))
		a.mem.Free(chunk)
	}
	if freed < need && a.n == 0 && a.index != nil {
		n := int64(len(a.entry)) * int64(entrySize)
		a.mem.Unmap(a.index)
		a.mem.Release(2 * n)
		a.index, a.entry = nil, nil
		freed += 2 * n
	}
	return freed
}

// close frees everything.
func (a *arena) close() {
	a.clear()
	a.shrink(1 << 62)
}

// sort orders the entries by partition, then, if sorted, by key, and within
// that by arrival. The order is only valid until done is called.
func (a *arena) sort(partitions int, sorted bool) (entries []entry, done func(), err error) {
	if a.n == 0 {
		return nil, func() {}, nil
	}
	scratch, err := a.mem.Map(len(a.index)) // drawn together with the index
	if err != nil {
		return nil, nil, err
	}
	in, spare := sortByPartition(a.entry[:a.n], entriesOf(scratch)[:a.n], partitions)
	if sorted {
		s := sorter{arena: a}
		for lo := 0; lo < len(in); {
			hi, p := lo+1, in[lo].partition()
			for hi < len(in) && in[hi].partition() == p {
				hi++
			}
			s.sort(in[lo:hi], spare[lo:hi], false, 0)
			lo = hi
		}
	}
	return in, func() { a.mem.Unmap(scratch) }, nil
}

// entriesOf looks at a buffer as entries. Buffers are aligned to pages.
func entriesOf(b []byte) []entry {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/entrySize)
}
