package shuffle

import "bytes"

// rangePartitioner finds partitions as abi.RangePartition does, but mostly by
// comparing numbers.
type rangePartitioner struct {
	bounds   [][]byte
	prefixes []uint64 // of the bounds
}

func newRangePartitioner(bounds [][]byte) rangePartitioner {
	p := rangePartitioner{bounds: bounds, prefixes: make([]uint64, len(bounds))}
	for i, b := range bounds {
		p.prefixes[i] = keyPrefix(b, 0, len(b))
	}
	return p
}

// partition is the number of bounds that are <= key, whose prefix is given.
func (p *rangePartitioner) partition(key []byte, prefix uint64) int {
	// Bounds with a smaller prefix are smaller, those with a larger one larger.
	lo, n := 0, len(p.prefixes)
	for n > 0 {
		half := n / 2
		if p.prefixes[lo+half] < prefix {
			lo += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	if lo == len(p.prefixes) || p.prefixes[lo] != prefix {
		return lo
	}
	// Those with the same prefix need a look at the bytes.
	for hi := len(p.prefixes); lo < hi; {
		mid := int(uint(lo+hi) / 2)
		if p.prefixes[mid] == prefix && bytes.Compare(p.bounds[mid], key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// ascending says whether bounds ascend.
func ascending(bounds [][]byte) bool {
	for i := 1; i < len(bounds); i++ {
		if bytes.Compare(bounds[i-1], bounds[i]) > 0 {
			return false
		}
	}
	return true
}
