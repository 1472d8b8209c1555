package shuffle

import (
	"bytes"
	"math/bits"
)

// entry is a record in the arena, as the sort sees it. All that decides the
// order of most records is in its 16 bytes, so that sorting rarely touches the
// arena.
type entry struct {
	// prefix is the first 8 bytes of the key (keyPrefix); 0 if keys do not matter.
	prefix uint64
	// ref is, from the top: the partition (24 bits), the key's length up to
	// longKey (4 bits; 0 if keys do not matter), the address in the arena (36
	// bits). Addresses ascend in the order in which records arrived. Hence, of
	// two entries with the same partition and prefix whose keys are not both
	// long, the one with the smaller ref comes first.
	ref uint64
}

const (
	addressBits    = 36
	klenShift      = addressBits
	partitionShift = klenShift + 4

	addressMask = 1<<addressBits - 1
	klenMask    = 15 << klenShift
)

func (e entry) klen() uint64    { return e.ref & klenMask >> klenShift }
func (e entry) partition() uint { return uint(e.ref >> partitionShift) }

// digitBits is how many bits of the partition one pass looks at.
const digitBits = 11

// sortByPartition orders a by partition, keeping the order within each. b is as
// long as a; the result is in the first slice that is returned, and the other
// one is the one that is returned second.
func sortByPartition(a, b []entry, partitions int) (sorted, spare []entry) {
	for shift := 0; (partitions-1)>>shift > 0; shift += digitBits {
		var at [1 << digitBits]uint32
		s := uint(partitionShift + shift)
		for i := range a {
			at[a[i].ref>>s&(1<<digitBits-1)]++
		}
		sum := uint32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, e := range a {
			d := e.ref >> s & (1<<digitBits - 1)
			b[at[d]] = e
			at[d]++
		}
		a, b = b, a
	}
	return a, b
}

// sorter sorts entries of one partition by (key, arrival).
type sorter struct{ arena *arena }

// insertionMax is the most entries that are sorted by insertion.
const insertionMax = 24

// sort orders src, which is in the order of arrival, with dst, which is as
// long, as its scratch. The result is in dst if toDst, else in src.
//
// It is a radix sort from the most significant byte that keeps the order of
// equal entries. When only the prefix's last bytes differ it starts there. When
// the prefixes are all equal, they are replaced by the next 8 bytes of the keys,
// depth bytes into the key.
func (s sorter) sort(src, dst []entry, toDst bool, depth int) {
	for {
		if len(src) <= insertionMax {
			s.insertion(src, depth)
			if toDst {
				copy(dst, src)
			}
			return
		}
		if inOrder(src) {
			if toDst {
				copy(dst, src)
			}
			return
		}
		diff := uint64(0)
		first := src[0].prefix
		for i := range src {
			diff |= src[i].prefix ^ first
		}
		if diff != 0 {
			s.radix(src, dst, toDst, depth, diff)
			return
		}
		// Same prefix: shorter keys first, and of the long ones the next bytes.
		var count [longKey + 1]int
		for i := range src {
			count[src[i].klen()]++
		}
		if long := count[longKey]; long < len(src) {
			var at [longKey + 1]int
			for i := 1; i < len(at); i++ {
				at[i] = at[i-1] + count[i-1]
			}
			for _, e := range src {
				dst[at[e.klen()]] = e
				at[e.klen()]++
			}
			short := len(src) - long
			if !toDst {
				copy(src[:short], dst[:short])
			}
			if long == 0 {
				return
			}
			src, dst, toDst = dst[short:], src[short:], !toDst
		}
		depth += 8
		for i := range src {
			s.deepen(&src[i], depth)
		}
	}
}

// inOrder says whether entries are in order, as far as can be seen without
// looking into the arena.
func inOrder(a []entry) bool {
	for i := 1; i < len(a); i++ {
		p, e := &a[i-1], &a[i]
		if p.prefix > e.prefix || p.prefix == e.prefix && (p.ref > e.ref || e.klen() == longKey) {
			return false
		}
	}
	return true
}

// radix distributes src over dst by the topmost bits in which prefixes differ.
func (s sorter) radix(src, dst []entry, toDst bool, depth int, diff uint64) {
	width := min(8, max(4, bits.Len(uint(len(src)))-3))
	shift := uint(max(0, bits.Len64(diff)-width))
	mask := uint64(1)<<width - 1
	var end [256]uint32
	for i := range src {
		end[src[i].prefix>>shift&mask&255]++
	}
	sum := uint32(0)
	for i := range end[:mask+1] {
		n := end[i]
		end[i] = sum
		sum += n
	}
	for _, e := range src {
		d := e.prefix >> shift & mask & 255
		dst[end[d]] = e
		end[d]++
	}
	lo := 0
	for _, hi := range end[:mask+1] {
		hi := int(hi)
		switch hi - lo {
		case 0:
		case 1:
			if !toDst {
				src[lo] = dst[lo]
			}
		default:
			s.sort(dst[lo:hi], src[lo:hi], !toDst, depth)
		}
		lo = hi
	}
}

// deepen makes e's prefix that of the key's rest from depth on.
func (s sorter) deepen(e *entry, depth int) {
	b := s.arena.at(e.ref & addressMask)
	r := parseRecord(b)
	rest := r.klen - depth
	e.prefix = keyPrefix(b, r.key+depth, rest)
	e.ref = e.ref&^klenMask | uint64(min(rest, longKey))<<klenShift
}

func (s sorter) insertion(a []entry, depth int) {
	for i := 1; i < len(a); i++ {
		e := a[i]
		j := i
		for j > 0 && s.less(e, a[j-1], depth) {
			a[j] = a[j-1]
			j--
		}
		a[j] = e
	}
}

// less orders two entries whose keys agree up to depth.
func (s sorter) less(a, b entry, depth int) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	if a.klen() == longKey && b.klen() == longKey {
		if c := bytes.Compare(s.key(a)[depth+8:], s.key(b)[depth+8:]); c != 0 {
			return c < 0
		}
	}
	return a.ref < b.ref
}

func (s sorter) key(e entry) []byte {
	b := s.arena.at(e.ref & addressMask)
	r := parseRecord(b)
	return b[r.key : r.key+r.klen]
}
