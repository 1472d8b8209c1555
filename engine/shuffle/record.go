package shuffle

import (
	"encoding/binary"

	"github.com/quern-project/quern/sdk/abi"
)

// A record is: uvarint key length, uvarint value length, key, value. It has
// this form in batches, in memory and in blocks, so that it is only ever copied.

// record is where the parts of a record lie, counted from its first byte.
type record struct {
	key   int // where the key begins
	klen  int
	total int // length of the whole record
}

// parseRecord finds the record that b begins with; false if b holds none that
// is whole.
func parseRecord(b []byte) (record, bool) {
	if len(b) >= 2 && b[0]|b[1] < 0x80 {
		r := record{key: 2, klen: int(b[0]), total: 2 + int(b[0]) + int(b[1])}
		return r, r.total <= len(b)
	}
	return parseLong(b)
}

func parseLong(b []byte) (record, bool) {
	klen, n := binary.Uvarint(b)
	if n <= 0 || klen > abi.MaxRecord {
		return record{}, false
	}
	vlen, m := binary.Uvarint(b[n:])
	if m <= 0 || vlen > abi.MaxRecord-klen {
		return record{}, false
	}
	r := record{key: n + m, klen: int(klen), total: n + m + int(klen+vlen)}
	return r, r.total <= len(b)
}

// recordLen is the length of the valid record that b begins with.
func recordLen(b []byte) int {
	if b[0]|b[1] < 0x80 {
		return 2 + int(b[0]) + int(b[1])
	}
	return longRecordLen(b)
}

func longRecordLen(b []byte) int {
	klen, n := binary.Uvarint(b)
	vlen, m := binary.Uvarint(b[n:])
	return n + m + int(klen+vlen)
}

// longKey stands for the length of a key that its prefix does not hold whole.
const longKey = 9

// keyPrefix is the first 8 bytes of the key b[at:at+n] as a number that orders
// as the bytes do, padded with zeros. b may go on behind the key.
func keyPrefix(b []byte, at, n int) uint64 {
	if n <= 0 {
		return 0
	}
	if at+8 <= len(b) {
		p := binary.BigEndian.Uint64(b[at:])
		if n < 8 {
			p &= ^uint64(0) << (64 - 8*uint(n))
		}
		return p
	}
	var pad [8]byte
	copy(pad[:], b[at:at+min(n, 8)])
	return binary.BigEndian.Uint64(pad[:])
}
