package quern

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// Sorting is a shuffle by ranges of keys: a first job samples the keys, the
// driver cuts the sample into ranges of about equal size, and the host sorts
// each range.

const (
	sampledPerPartition = 20      // of the result, on average
	sampledAtMost       = 1 << 20 // in all
	// Partitions differ in size, so each is sampled that much more than its share.
	sampledTimes = 3
)

// SortBy sorts by the key that f returns; equal keys stay in their order. Keys
// are compared as described in the package comment. The first partition of the
// result has the smallest keys (with ascending false the largest), and so on.
// SortBy runs a job at once, to sample the keys, unless the result has one partition.
func (r RDD[T]) SortBy[K any](f func(T) K, ascending bool, numPartitions ...int) RDD[T] {
	c, cerr := codecOf[T]()
	k, kerr := keyCodecOf[K](!ascending)
	if kerr != nil {
		cerr = keyError(kerr)
	}
	key := func(e *encoder, slot *K, v T) {
		*slot = f(v)
		k.enc(e, unsafe.Pointer(slot))
	}
	s, err := rangeShuffle(r.r, "sortBy", numPartitions, []uintptr{entry(f)}, cerr, func() func(*encoder, T) {
		slot := new(K)
		return func(e *encoder, v T) { key(e, slot, v) }
	})
	s.write = func(p int) {
		w := s.writer(p)
		keySlot, slot := new(K), new(T)
		r.r.each(p)(func(v T) bool {
			w.begin()
			key(&w.encoder, keySlot, v)
			w.value()
			*slot = v
			c.enc(&w.encoder, unsafe.Pointer(slot))
			w.end()
			return true
		})
		w.close()
	}
	return RDD[T]{&rdd[T]{
		node: define(s.definition("sortBy", nil, []uintptr{entry(f)}, err)),
		each: func(p int) iter.Seq[T] { return shuffledValues[T](s, p, c) },
	}}
}

// SortByKey sorts by the keys; see RDD.SortBy.
func (p PairRDD[K, V]) SortByKey(ascending bool, numPartitions ...int) PairRDD[K, V] {
	c, cerr := codecOf[V]()
	k, kerr := keyCodecOf[K](!ascending)
	if kerr != nil {
		cerr = keyError(kerr)
	}
	s, err := rangeShuffle(p.r, "sortByKey", numPartitions, nil, cerr, func() func(*encoder, Pair[K, V]) {
		slot := new(K)
		return func(e *encoder, v Pair[K, V]) {
			*slot = v.Key
			k.enc(e, unsafe.Pointer(slot))
		}
	})
	s.write = func(i int) { writePairs(s, p.r.each(i), s.writer(i), k, c, nil) }
	var lay *layout
	if ascending {
		lay = &layout{kind: abi.PartitionRange, n: s.desc.Partitions, bounds: s.desc.Bounds}
	}
	read := shuffled[K, V](s, k, c)
	return PairRDD[K, V]{&rdd[Pair[K, V]]{
		node: define(s.definition("sortByKey", lay, nil, err)),
		each: func(i int) iter.Seq[Pair[K, V]] { return allRecords(read, i) },
	}}
}

// rangeShuffle samples the keys and makes the shuffle. keys makes a function that
// appends an element's key.
func rangeShuffle[T any](in *rdd[T], name string, asked []int, entries []uintptr, err error,
	keys func() func(*encoder, T)) (*shuffle, error) {
	parent := in.base()
	n, nerr := shuffleParts(asked, parent)
	if err == nil {
		err = nerr
	}
	for _, e := range entries {
		if e == 0 {
			n = 1 // define will say so
		}
	}
	want := &layout{kind: abi.PartitionRange, n: n}
	if err == nil && parent.err == nil && n > 1 {
		want.bounds, err = rangeBounds(in, name, n, keys)
		want.n = len(want.bounds) + 1
		if len(asked) > 0 {
			want.n = n // what was asked for, be some partitions empty
		}
	}
	return newShuffle(parent, want, true), err
}

// sampledKey stands for weight elements.
type sampledKey struct {
	key    []byte
	weight float64
}

// rangeBounds runs the sampling job and cuts the sample into at most n ranges.
func rangeBounds[T any](in *rdd[T], name string, n int, keys func() func(*encoder, T)) ([][]byte, error) {
	parts := max(in.parts, 1)
	per := min(sampledPerPartition*n, sampledAtMost)*sampledTimes/parts + 1
	var sample []sampledKey
	err := in.runJob(name+" (sample)", nil, nil, func(p int, out *results) {
		seen, kept := sampleKeys(in.each(p), per, uint64(p), keys())
		if len(kept) == 0 {
			return
		}
		out.b = binary.LittleEndian.AppendUint64(out.b, uint64(seen))
		out.uvarint(uint64(len(kept)))
		for _, k := range kept {
			out.uvarint(uint64(len(k)))
			out.b = append(out.b, k...)
		}
	}, func(_ int, b []byte) bool {
		d := decoder{b: bytes.Clone(b)}
		for d.pos < len(d.b) {
			head := d.take(8)
			kept := d.uvarint()
			if head == nil || kept == 0 {
				return false
			}
			weight := float64(binary.LittleEndian.Uint64(head)) / float64(kept)
			for range kept {
				sample = append(sample, sampledKey{d.take(d.uvarint()), weight})
				if d.bad {
					return false
				}
			}
		}
		return true
	})
	return cutRanges(sample, n), err
}

// sampleKeys picks up to n keys of a partition at random, each with the same
// chance (Li's algorithm L), with a seed so that it always picks the same. It
// returns the number of elements, too.
func sampleKeys[T any](in iter.Seq[T], n int, seed uint64, key func(*encoder, T)) (seen int64, kept [][]byte) {
	random := rand.New(rand.NewPCG(seed, 0x7175_6572_6e00_0001))
	var e encoder
	w := 1.0
	var next int64 // the next element to keep, once there are n
	skip := func() {
		w *= math.Exp(math.Log(1-random.Float64()) / float64(n))
		jump := math.Floor(math.Log(1-random.Float64())/math.Log1p(-w)) + 1
		if !(jump < 1<<62) {
			jump = 1 << 62
		}
		next += int64(jump)
	}
	in(func(v T) bool {
		if len(kept) < n {
			e.b = e.b[:0]
			key(&e, v)
			kept = append(kept, bytes.Clone(e.b))
			if len(kept) == n {
				next = seen
				skip()
			}
		} else if seen == next {
			e.b = e.b[:0]
			key(&e, v)
			kept[random.IntN(n)] = bytes.Clone(e.b)
			skip()
		}
		seen++
		return true
	})
	return seen, kept
}

// cutRanges returns ascending, different bounds that cut the sample into at most
// n ranges of about equal weight.
func cutRanges(sample []sampledKey, n int) [][]byte {
	slices.SortStableFunc(sample, func(a, b sampledKey) int { return bytes.Compare(a.key, b.key) })
	total := 0.0
	for _, s := range sample {
		total += s.weight
	}
	var bounds [][]byte
	sum, step := 0.0, total/float64(n)
	target := step
	for i, s := range sample {
		// A bound is the first key of the range above it, hence never the first of all.
		if sum >= target && i > 0 && len(bounds) < n-1 && !bytes.Equal(s.key, sample[0].key) {
			if len(bounds) == 0 || !bytes.Equal(bounds[len(bounds)-1], s.key) {
				bounds = append(bounds, s.key)
				for target <= sum {
					target += step
				}
			}
		}
		sum += s.weight
	}
	return bounds
}
