package quern

import "unsafe"

// table numbers byte strings in the order in which they first come: the map
// side's table of keys. It is made for the sandbox: the keys lie in one block
// that the collector does not look into, a slot is one word, and its memory is
// used again after each flush.
type table struct {
	slots []uint64 // hash<<32 | number+1; 0 is free
	keys  []byte   // all keys, one after the other
	ends  []uint32 // of key i in keys
}

const (
	firstSlots = 1 << 8
	// A table is full, and is flushed, when it has so many keys or bytes of keys.
	// More combine better, but leave the processor's cache and the task's limit.
	tableKeys  = 1 << 16
	tableBytes = 4 << 20
)

func newTable() *table { return &table{slots: make([]uint64, firstSlots)} }

func (t *table) len() int { return len(t.ends) }

// full says whether to flush before more keys come.
func (t *table) full() bool { return len(t.ends) >= tableKeys || len(t.keys) >= tableBytes }

// key returns the bytes of key i, valid until reset.
func (t *table) key(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.keys[start:t.ends[i]]
}

// find returns the number of a key, and whether it was there before.
func (t *table) find(key []byte) (int, bool) {
	h := hashBytes(key)
	mask := uint64(len(t.slots) - 1)
	tag := h &^ (1<<32 - 1)
	i := h >> 7 & mask
	for {
		s := t.slots[i]
		if s == 0 {
			break
		}
		if s&^(1<<32-1) == tag {
			n := int(uint32(s)) - 1
			if string(t.key(n)) == string(key) {
				return n, true
			}
		}
		i = (i + 1) & mask
	}
	n := len(t.ends)
	t.slots[i] = tag | uint64(n+1)
	t.keys = append(t.keys, key...)
	t.ends = append(t.ends, uint32(len(t.keys)))
	if 2*len(t.ends) > len(t.slots) {
		t.grow()
	}
	return n, false
}

func (t *table) grow() {
	t.slots = make([]uint64, 4*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.ends {
		h := hashBytes(t.key(n))
		i := h >> 7 & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = h&^(1<<32-1) | uint64(n+1)
	}
}

// reset forgets all keys.
func (t *table) reset() {
	clear(t.slots)
	t.keys, t.ends = t.keys[:0], t.ends[:0]
}

// hashBytes is for this table alone: nothing that leaves the task depends on it.
// It takes eight bytes a step with one multiplication of 64 bits, which is what
// a sandbox has.
func hashBytes(b []byte) uint64 {
	const m = 0x9e3779b97f4a7c15
	n := len(b)
	h := uint64(n) * m
	p := unsafe.Pointer(unsafe.SliceData(b))
	for ; n >= 8; n -= 8 {
		h = (h ^ *(*uint64)(p)) * m
		h ^= h >> 29
		p = unsafe.Add(p, 8)
	}
	if n >= 4 {
		h = (h ^ uint64(*(*uint32)(p))) * m
		h ^= h >> 29
		p, n = unsafe.Add(p, 4), n-4
	}
	for ; n > 0; n-- {
		h = (h ^ uint64(*(*byte)(p))) * m
		p = unsafe.Add(p, 1)
	}
	return h ^ h>>32
}
