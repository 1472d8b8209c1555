package quern

import "unsafe"

// table numbers byte strings in the order in which they first come: the map
// side's table of keys. It is made for the sandbox: neither slots nor entries
// nor keys are of interest to the collector, a key of up to eight bytes is
// compared as one word, and the memory is used again after each flush.
type table struct {
	slots   []uint16 // number of an entry, plus 1; 0 is free
	entries []tableEntry
	keys    []byte // all keys, one after the other
}

type tableEntry struct {
	word   uint64 // see findAt
	off, n uint32 // of the key in keys
}

const (
	firstSlots = 1 << 8
	// A table is full, and is flushed, when it has so many keys or bytes of keys.
	// More combine better, but leave the processor's cache and the task's limit.
	tableKeys  = 1<<16 - 1
	tableBytes = 4 << 20
)

func newTable() *table { return &table{slots: make([]uint16, firstSlots)} }

// full says whether to flush before more keys come.
func (t *table) full() bool { return len(t.entries) >= tableKeys || len(t.keys) >= tableBytes }

// key returns the bytes of key i, valid until reset.
func (t *table) key(i int) []byte {
	e := t.entries[i]
	return t.keys[e.off : e.off+e.n]
}

// find returns the number of a key. If it is new, that is what len was before.
func (t *table) find(key []byte) int {
	return t.findAt(unsafe.Pointer(unsafe.SliceData(key)), uint32(len(key)))
}

// findAt is find for n bytes at p. It makes a key one word, for this table alone;
// nothing that leaves the task depends on it. Of a key of up to eight bytes it is
// the bytes themselves, some of them twice, so that keys of one length are equal
// if their words are.
func (t *table) findAt(p unsafe.Pointer, n uint32) int {
	word := shortWord(p, n)
	if n > 8 {
		word = longWord(p, n)
	}
	slots := t.slots
	i := slotOf(word, n)
	for {
		i &= len(slots) - 1
		s := int(slots[i]) - 1
		if s < 0 {
			return t.insert(unsafe.Slice((*byte)(p), n), word, i)
		}
		if e := &t.entries[s]; e.word == word && e.n == n && (n <= 8 || t.same(e, p)) {
			return s
		}
		i++
	}
}

// hit is findAt for the most frequent case alone, a short key in the first slot
// that is tried. Otherwise it answers -1. The compiler inlines it.
func (t *table) hit(word uint64, n uint32) int {
	if s := int(t.slots[slotOf(word, n)&(len(t.slots)-1)]) - 1; s >= 0 && t.entries[s].word == word && t.entries[s].n == n {
		return s
	}
	return -1
}

func (t *table) len() int { return len(t.entries) }

// same compares a key longer than its word.
func (t *table) same(e *tableEntry, p unsafe.Pointer) bool {
	return string(t.keys[e.off:e.off+e.n]) == unsafe.String((*byte)(p), e.n)
}

// insert adds a key that was not found; i is its free slot.
func (t *table) insert(key []byte, word uint64, i int) int {
	t.entries = append(t.entries, tableEntry{word, uint32(len(t.keys)), uint32(len(key))})
	t.keys = append(t.keys, key...)
	number := len(t.entries)
	t.slots[i] = uint16(number)
	if 4*number > 3*len(t.slots) {
		t.grow()
	}
	return number - 1
}

func (t *table) grow() {
	t.slots = make([]uint16, 2*len(t.slots))
	mask := len(t.slots) - 1
	for number := range t.entries {
		i := slotOf(t.entries[number].word, t.entries[number].n) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint16(number + 1)
	}
}

// reset forgets all keys.
func (t *table) reset() {
	clear(t.slots)
	t.keys, t.entries = t.keys[:0], t.entries[:0]
}

// Odd, with about as many ones as zeros.
const hashFactor = 0x9e3779b97f4a7c15

// slotOf spreads words over slots: its low bits depend on all of word.
func slotOf(word uint64, n uint32) int {
	h := (word + uint64(n)) * hashFactor
	return int(h >> 32)
}

// shortWord is the word of a key of up to eight bytes.
func shortWord(p unsafe.Pointer, n uint32) uint64 {
	switch {
	case n-4 <= 4:
		return uint64(*(*uint32)(p))<<32 | uint64(*(*uint32)(unsafe.Add(p, n-4)))
	case n-1 < 3:
		return uint64(*(*byte)(p))<<16 | uint64(*(*byte)(unsafe.Add(p, n/2)))<<8 | uint64(*(*byte)(unsafe.Add(p, n-1)))
	}
	return 0
}

// longWord is the word of a key of more than eight bytes: a hash, made with one
// multiplication of 64 bits a step, which is what a sandbox has.
func longWord(p unsafe.Pointer, n uint32) uint64 {
	h := uint64(0)
	last := *(*uint64)(unsafe.Add(p, n-8))
	for ; n > 8; n -= 8 {
		h = (h ^ *(*uint64)(p)) * hashFactor
		h ^= h >> 32
		p = unsafe.Add(p, 8)
	}
	h = (h ^ last) * hashFactor
	return h ^ h>>32
}
