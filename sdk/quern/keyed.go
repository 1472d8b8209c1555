package quern

import (
	"iter"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// keyed is a pair RDD as the input of an operation that needs equal keys
// together: laid out, and in the order of the keys' bytes.
type keyed[K comparable, V any] struct {
	dep   abi.DepDesc
	moved *shuffle // nil if the pairs lay right already
	key   *keyCodec
	value *codec // with moved
	open  func(p int) *records[K, V]
}

// lay makes in a keyed input. Pairs that do not lie as wanted are shuffled.
func lay[K comparable, V any](in *rdd[Pair[K, V]], want *layout, f func(K) int) (*keyed[K, V], error) {
	parent := in.base()
	k, err := keyCodecOf[K](false)
	if err != nil {
		return &keyed[K, V]{}, keyError(err)
	}
	if parent.layout.like(want) {
		return &keyed[K, V]{
			dep: abi.DepDesc{Parent: parent.id, Kind: abi.DepOneToOne}, key: k,
			open: func(p int) *records[K, V] { return pulledRecords(in.each(p), k) },
		}, nil
	}
	c, err := codecOf[V]()
	if err != nil {
		return &keyed[K, V]{}, err
	}
	s := newShuffle(parent, want, true)
	s.write = func(p int) { writePairs(s, in.each(p), s.writer(p), k, c, f) }
	return shuffled[K, V](s, k, c), nil
}

// shuffled is the reading side of a sorted shuffle.
func shuffled[K comparable, V any](s *shuffle, k *keyCodec, c *codec) *keyed[K, V] {
	return &keyed[K, V]{
		dep: s.dep(), moved: s, key: k, value: c,
		open: func(p int) *records[K, V] {
			return &records[K, V]{
				in:    openCursor(abi.PortShuffleRead, s.desc.ID, p, k.aliases || c.aliases),
				codec: c, slot: new(V), keys: k, keySlot: new(K),
			}
		},
	}
}

// writePairs is the map side without combining.
func writePairs[K comparable, V any](s *shuffle, in iter.Seq[Pair[K, V]], w *shuffleWriter, k *keyCodec, c *codec, f func(K) int) {
	slot := new(Pair[K, V])
	in(func(v Pair[K, V]) bool {
		*slot = v
		w.begin()
		if f != nil {
			w.partition(f(v.Key), s.desc.Partitions)
		}
		k.enc(&w.encoder, unsafe.Pointer(&slot.Key))
		w.value()
		c.enc(&w.encoder, unsafe.Pointer(&slot.Value))
		w.end()
		return true
	})
	w.close()
}

// definition is that of an RDD computed from keyed inputs.
func (in *keyed[K, V]) addTo(d *definition, parent *node) {
	d.parents = append(d.parents, parent)
	d.deps = append(d.deps, in.dep)
	if in.moved != nil {
		d.shuffles = append(d.shuffles, in.moved)
	}
}

// records reads pairs in the order of their keys, one at a time. They come from
// a shuffle, or from an RDD that lies right already.
type records[K comparable, V any] struct {
	in    *cursor // a shuffle's
	codec *codec
	slot  *V

	pull  func() ([]Pair[K, V], bool) // an RDD's, some at a time
	stop  func()
	chunk []Pair[K, V]
	at    int // in chunk, of the next pair
	e     encoder

	keys    *keyCodec
	keySlot *K
	d       decoder
	more    bool
	bytes   []byte // of the present key, until next
}

// pullChunk is how many pairs are taken from an RDD at a time: each time costs a
// switch between two stacks, which is hundreds of nanoseconds in a sandbox.
const pullChunk = 256

func pulledRecords[K comparable, V any](in iter.Seq[Pair[K, V]], k *keyCodec) *records[K, V] {
	r := &records[K, V]{keys: k, keySlot: new(K)}
	r.pull, r.stop = iter.Pull(func(yield func([]Pair[K, V]) bool) {
		chunk := make([]Pair[K, V], 0, pullChunk)
		more := true
		in(func(v Pair[K, V]) bool {
			if chunk = append(chunk, v); len(chunk) == cap(chunk) {
				more = yield(chunk)
				chunk = chunk[:0]
			}
			return more
		})
		if more && len(chunk) > 0 {
			yield(chunk)
		}
	})
	return r
}

// next moves to the next pair; false at the end.
func (r *records[K, V]) next() bool {
	if r.in != nil {
		r.more = r.in.next()
		r.bytes = r.in.key
		return r.more
	}
	if r.at == len(r.chunk) {
		if r.chunk, r.more = r.pull(); !r.more {
			r.bytes, r.at, r.chunk = nil, 0, nil
			return false
		}
		r.at = 0
	}
	*r.keySlot = r.chunk[r.at].Key
	r.at++
	r.e.b = r.e.b[:0]
	r.keys.enc(&r.e, unsafe.Pointer(r.keySlot))
	r.bytes = r.e.b
	return true
}

// value is the present pair's.
func (r *records[K, V]) value() V {
	if r.in == nil {
		return r.chunk[r.at-1].Value
	}
	var zero V
	*r.slot = zero
	r.d.value(r.codec, r.in.value, unsafe.Pointer(r.slot))
	return *r.slot
}

// key is the present pair's.
func (r *records[K, V]) key() K {
	switch {
	case r.in == nil:
	case r.keys.raw:
		*(*string)(unsafe.Pointer(r.keySlot)) = unsafe.String(unsafe.SliceData(r.bytes), len(r.bytes))
	default:
		var zero K
		*r.keySlot = zero
		r.d.key(r.keys, r.bytes, unsafe.Pointer(r.keySlot))
	}
	return *r.keySlot
}

func (r *records[K, V]) close() {
	if r.in != nil {
		r.in.close()
	} else {
		r.stop()
	}
}

// partition writes the number that a user's partitioner has given.
func (w *shuffleWriter) partition(p, n int) {
	if p < 0 || p >= n {
		failPartition(p, n)
	}
	w.b = append(w.b, byte(p>>24), byte(p>>16), byte(p>>8), byte(p))
}
