package shuffle

import (
	"encoding/binary"
	"math"

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

// parseRecord finds the record that b begins with. If b holds none that is
// whole, its total is larger than len(b).
func parseRecord(b []byte) record {
	if len(b) >= 2 {
		if k, v := int(b[0]), int(b[1]); k|v < 0x80 {
			return record{2, k, 2 + k + v}
		}
	}
	return parseLong(b)
}

// malformed is larger than any batch or block.
const malformed = math.MaxInt

func parseLong(b []byte) record {
	klen, n := binary.Uvarint(b)
	if n <= 0 || klen > abi.MaxRecord {
		return record{total: malformed}
	}
	vlen, m := binary.Uvarint(b[n:])
	if m <= 0 || vlen > abi.MaxRecord-klen {
		return record{total: malformed}
	}
	return record{key: n + m, klen: int(klen), total: n + m + int(klen+vlen)}
}

// recordLen is the length of the valid record that b begins with.
func recordLen(b []byte) int {
	if k, v := int(b[0]), int(b[1]); k|v < 0x80 {
		return 2 + k + v
	}
	return parseLong(b).total
}

// longKey stands for the length of a key that its prefix does not hold whole.
const longKey = 9

// keyPrefix is the first 8 bytes of the key b[at:at+n] as a number that orders
// as the bytes do, padded with zeros. b may go on behind the key.
func keyPrefix(b []byte, at, n int) uint64 {
	if at+8 <= len(b) {
		return binary.BigEndian.Uint64(b[at:]) &^ (math.MaxUint64 >> (8 * uint(min(n, 8))))
	}
	return keyPrefixAtEnd(b, at, n)
}

func keyPrefixAtEnd(b []byte, at, n int) uint64 {
	var pad [8]byte
	copy(pad[:], b[at:at+min(n, 8)])
	return binary.BigEndian.Uint64(pad[:])
}
