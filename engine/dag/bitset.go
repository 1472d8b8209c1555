package dag

// bitset is a set of small numbers. Its zero value is empty and has no room.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bitset) add(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) remove(i int)   { b[i>>6] &^= 1 << (i & 63) }
