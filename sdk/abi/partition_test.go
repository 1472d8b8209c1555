package abi_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/abi"
)

// Keys as jobs really have them: the shapes that weak hashes trip over.
var keyShapes = map[string]func(i int) []byte{
	"ascending big-endian integers": func(i int) []byte {
		return binary.BigEndian.AppendUint64(nil, uint64(i)^1<<63)
	},
	"multiples of 4096": func(i int) []byte {
		return binary.BigEndian.AppendUint64(nil, uint64(i)<<12^1<<63)
	},
	"32-bit integers": func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)^1<<31) },
	"floats":          func(i int) []byte { return binary.BigEndian.AppendUint64(nil, ^math.Float64bits(-float64(i)/2)) },
	"numbered words":  func(i int) []byte { return fmt.Appendf(nil, "user%d", i) },
	"decimal strings": func(i int) []byte { return fmt.Appendf(nil, "%09d", i) },
	"long, differing in the middle": func(i int) []byte {
		return fmt.Appendf(nil, "https://example.org/section/%07d/index.html?lang=en", i)
	},
	"zeros of every length": func(i int) []byte { return make([]byte, i%4096) },
}

func TestHashPartitionSpreadsRealKeysEvenly(t *testing.T) {
	for shape, key := range keyShapes {
		for _, n := range []int{2, 3, 7, 8, 16, 100, 257} {
			t.Run(fmt.Sprintf("%s over %d", shape, n), func(t *testing.T) {
				keys := 200 * n
				if shape == "zeros of every length" {
					keys = 4096
				}
				counts := make([]float64, n)
				for i := range keys {
					counts[abi.HashPartition(key(i), n)]++
				}
				want := float64(keys) / float64(n)
				var chi2 float64
				for _, c := range counts {
					chi2 += (c - want) * (c - want) / want
				}
				// Mean n-1, deviation sqrt(2(n-1)): six of them is far outside chance.
				df := float64(n - 1)
				if limit := df + 6*math.Sqrt(2*df); chi2 > limit {
					t.Errorf("chi-square %.1f, want below %.1f", chi2, limit)
				}
			})
		}
	}
}

func TestHashChangesHalfOfItsBitsWithEachBitOfTheKey(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, length := range []int{1, 3, 4, 7, 8, 9, 15, 16, 17, 40} {
		for bit := range 8 * length {
			const rounds = 150
			var flipped [64]int
			for range rounds {
				key := make([]byte, length)
				for i := range key {
					key[i] = byte(r.Uint32())
				}
				before := abi.Hash(key)
				key[bit/8] ^= 1 << (bit % 8)
				diff := before ^ abi.Hash(key)
				for b := range flipped {
					flipped[b] += int(diff >> b & 1)
				}
			}
			for b, n := range flipped {
				if n < rounds/4 || n > rounds*3/4 {
					t.Errorf("length %d: bit %d of the key flips bit %d of the hash in %d of %d keys", length, bit, b, n, rounds)
				}
			}
		}
	}
}

func TestHashDoesNotCollideOnShortKeys(t *testing.T) {
	seen := map[uint64][]byte{}
	check := func(key []byte) {
		if other, ok := seen[abi.Hash(key)]; ok {
			t.Fatalf("%x and %x have the same hash", other, key)
		}
		seen[abi.Hash(key)] = key
	}
	check(nil)
	for a := range 256 {
		check([]byte{byte(a)})
		for b := range 256 {
			check([]byte{byte(a), byte(b)})
		}
	}
	for length := 3; length < 40; length++ {
		for at := range length {
			for v := 1; v < 256; v++ {
				key := make([]byte, length)
				key[at] = byte(v)
				check(key)
			}
		}
	}
}

// Stored shuffles and other SDKs depend on these values.
func TestHashIsFixed(t *testing.T) {
	for key, want := range map[string]uint64{
		"":                     0x92d2b44b69bac00a,
		"a":                    0x97bf33f129902c5,
		"word":                 0x625f269a3150e485,
		"a longer key of text": 0xef04ba7e69a78c1e,
	} {
		if got := abi.Hash([]byte(key)); got != want {
			t.Errorf("Hash(%q) = %#x, want %#x", key, got, want)
		}
	}
}

func TestHashPartitionStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
		n := rapid.IntRange(1, math.MaxInt32).Draw(t, "n")
		if p := abi.HashPartition(key, n); p < 0 || p >= n {
			t.Fatalf("partition %d of %d", p, n)
		}
	})
}

func TestRangePartitionCountsTheBoundsNotAboveTheKey(t *testing.T) {
	short := rapid.SliceOfN(rapid.ByteRange(0, 2), 0, 3) // few values, so that keys meet bounds
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SliceOfN(short, 0, 9).Draw(t, "bounds")
		sortBytes(bounds)
		key := short.Draw(t, "key")
		want := 0
		for _, b := range bounds {
			if bytes.Compare(b, key) <= 0 {
				want++
			}
		}
		if got := abi.RangePartition(key, bounds); got != want {
			t.Fatalf("RangePartition(%x, %x) = %d, want %d", key, bounds, got, want)
		}
	})
}

func sortBytes(b [][]byte) {
	for i := range b {
		for j := i; j > 0 && bytes.Compare(b[j-1], b[j]) > 0; j-- {
			b[j-1], b[j] = b[j], b[j-1]
		}
	}
}

func BenchmarkHashPartition(b *testing.B) {
	for _, length := range []int{4, 8, 12, 40, 100} {
		b.Run(fmt.Sprintf("%d bytes", length), func(b *testing.B) {
			key := bytes.Repeat([]byte("k"), length)
			b.SetBytes(int64(length))
			var sum int
			for i := range b.N {
				key[0] = byte(i)
				sum += abi.HashPartition(key, 200)
			}
			sink = sum
		})
	}
}

var sink int
