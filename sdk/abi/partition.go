package abi

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Where a record goes is part of the contract: a job gives the same partitions,
// and so collects in the same order, natively, in a sandbox and on a cluster.

// Odd constants with about as many ones as zeros, the fractions of the square
// roots of 2, 3 and 5. Changing them moves every job's records: a new Version.
const (
	hashSeed = 0x6a09e667f3bcc909
	hashBody = 0xbb67ae8584caa73b
	hashLast = 0x3c6ef372fe94f82b
)

// Hash is a 64-bit hash of key, equal on every platform and in every version of
// the ABI that has the same number. It is fast on the short keys of a shuffle
// and spreads well; it does not resist keys chosen to collide.
func Hash(key []byte) uint64 {
	n := len(key)
	h := uint64(n)*hashBody ^ hashSeed
	for len(key) > 8 {
		h = fold(h^binary.LittleEndian.Uint64(key), hashBody)
		key = key[8:]
	}
	// The last 1 to 8 bytes; n keeps keys apart whose tails overlap to the same.
	var last uint64
	switch {
	case len(key) == 8:
		last = binary.LittleEndian.Uint64(key)
	case len(key) >= 4:
		last = uint64(binary.LittleEndian.Uint32(key))<<32 | uint64(binary.LittleEndian.Uint32(key[len(key)-4:]))
	case len(key) > 0:
		last = uint64(key[0])<<16 | uint64(key[len(key)/2])<<8 | uint64(key[len(key)-1])
	}
	return fold(fold(h^last, hashBody)^hashLast, hashLast)
}

// fold multiplies to 128 bits and folds the halves, so that every bit of a
// reaches the middle of the product and from there both ends.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// HashPartition is the partition in [0, n) of a record with this key under
// PartitionHash. n is at least 1.
func HashPartition(key []byte, n int) int {
	p, _ := bits.Mul64(Hash(key), uint64(n)) // the hash as a fraction of n: no division
	return int(p)
}

// RangePartition is the number of bounds that are <= key, which is the
// partition under PartitionRange. bounds ascend in the order of their bytes; a
// key equal to a bound lies behind it.
func RangePartition(key []byte, bounds [][]byte) int {
	lo, hi := 0, len(bounds)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if bytes.Compare(bounds[mid], key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
