package quern

import (
	"iter"
	"strconv"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// combiner is how values of one key become one: the functions of CombineByKey.
type combiner[V, C any] struct {
	create func(V) C
	add    func(C, V) C
	merge  func(C, C) C
}

// combine is every aggregation by key. Values are combined where they are
// produced, as far as they meet there, then shuffled, then combined again.
// Pairs that lie right already are only combined.
func combine[K comparable, V, C any](in *rdd[Pair[K, V]], name string, by combiner[V, C], asked []int,
	entries []uintptr, err error) *rdd[Pair[K, C]] {
	parent := in.base()
	n, nerr := shuffleParts(asked, parent)
	k, kerr := keyCodecOf[K](false)
	c, cerr := codecOf[C]()
	switch {
	case err != nil:
	case nerr != nil:
		err = nerr
	case kerr != nil:
		err = keyError(kerr)
	case cerr != nil:
		err = cerr
	}
	if parent.layout != nil && (len(asked) == 0 || parent.layout.n == n) {
		return combineInPlace(in, name, by, k, entries, err)
	}
	want := hashLayout(n)
	s := newShuffle(parent, want, true)
	s.write = func(p int) {
		w := s.writer(p)
		writeCombined(in.each(p), w, by, k, c)
		w.close()
	}
	read := shuffled[K, C](s, k, c)
	return &rdd[Pair[K, C]]{
		node: define(s.definition(name, want, entries, err)),
		each: func(p int) iter.Seq[Pair[K, C]] {
			return combineRecords(read, p, func(c C) C { return c }, by.merge)
		},
	}
}

// combineInPlace combines pairs that lie in order.
func combineInPlace[K comparable, V, C any](in *rdd[Pair[K, V]], name string, by combiner[V, C], k *keyCodec,
	entries []uintptr, err error) *rdd[Pair[K, C]] {
	parent := in.base()
	d := definition{
		name: name, parts: parent.parts, parents: []*node{parent}, layout: parent.layout, entries: entries, err: err,
		deps: []abi.DepDesc{{Parent: parent.id, Kind: abi.DepOneToOne}},
	}
	read := &keyed[K, V]{open: func(p int) *records[K, V] { return pulledRecords(in.each(p), k) }}
	return &rdd[Pair[K, C]]{
		node: define(d),
		each: func(p int) iter.Seq[Pair[K, C]] { return combineRecords(read, p, by.create, by.add) },
	}
}

// combineRecords makes one pair of all pairs with the same key.
func combineRecords[K comparable, V, C any](read *keyed[K, V], p int, create func(V) C, add func(C, V) C) iter.Seq[Pair[K, C]] {
	return func(yield func(Pair[K, C]) bool) {
		in := read.open(p)
		var last []byte
		var present Pair[K, C]
		some, going := false, true
		for in.next() {
			if some && string(in.bytes) == string(last) {
				present.Value = add(present.Value, in.value())
				continue
			}
			if some && !yield(present) {
				going = false
				break
			}
			some = true
			last = append(last[:0], in.bytes...)
			present = Pair[K, C]{in.key(), create(in.value())}
		}
		in.close()
		if some && going {
			yield(present)
		}
	}
}

// writeCombined is the map side. Its loop is one function, because a call costs
// a sandbox more than most of what is done here.
func writeCombined[K comparable, V, C any](in iter.Seq[Pair[K, V]], w *shuffleWriter, by combiner[V, C], k *keyCodec, c *codec) {
	m := &mapSide[K, V, C]{w: w, by: by, key: k, raw: k.raw, codec: c, table: newTable(), keySlot: new(K), slot: new(C)}
	in(func(v Pair[K, V]) bool {
		if m.useless {
			m.pass(v)
			return true
		}
		var i int
		if m.raw {
			s := *(*string)(unsafe.Pointer(&v.Key))
			p, n := unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
			i = -1
			if n <= 8 {
				i = m.table.hit(shortWord(p, n), n)
			}
			if i < 0 {
				i = m.table.findAt(p, n)
			}
		} else {
			*m.keySlot = v.Key
			m.e.b = m.e.b[:0]
			m.key.enc(&m.e, unsafe.Pointer(m.keySlot))
			i = m.table.find(m.e.b)
		}
		m.taken++
		if i < len(m.combined) {
			c := &m.combined[i]
			*c = m.by.add(*c, v.Value)
			return true
		}
		m.combined = append(m.combined, m.by.create(v.Value))
		if m.table.full() {
			m.flush()
		}
		return true
	})
	m.flush()
}

// mapSide combines pairs before they are shuffled. Keys meet in a table of
// bounded size; when it is full, it is written out in the order in which the
// keys came, so that the output depends on the input alone.
type mapSide[K comparable, V, C any] struct {
	w     *shuffleWriter
	by    combiner[V, C]
	key   *keyCodec
	codec *codec

	raw      bool // the key's, at hand
	table    *table
	combined []C  // by number in the table
	taken    int  // pairs since the last flush
	useless  bool // keys hardly ever meet: not worth the table's time

	e       encoder // a key
	keySlot *K
	slot    *C
}

// pass writes a pair without the table.
func (m *mapSide[K, V, C]) pass(v Pair[K, V]) {
	m.w.begin()
	*m.keySlot = v.Key
	m.key.enc(&m.w.encoder, unsafe.Pointer(m.keySlot))
	m.w.value()
	*m.slot = m.by.create(v.Value)
	m.codec.enc(&m.w.encoder, unsafe.Pointer(m.slot))
	m.w.end()
}

func (m *mapSide[K, V, C]) flush() {
	for i := range m.combined {
		m.w.begin()
		m.w.b = append(m.w.b, m.table.key(i)...)
		m.w.value()
		*m.slot = m.combined[i]
		m.codec.enc(&m.w.encoder, unsafe.Pointer(m.slot))
		m.w.end()
	}
	m.useless = m.taken/10*9 < len(m.combined)
	m.taken = 0
	clear(m.combined)
	m.combined = m.combined[:0]
	m.table.reset()
}

// CombineByKey makes one value of all values of a key: create starts with the
// first, mergeValue adds one more, mergeCombiners joins what came from different
// partitions. The order in which values meet is the same in every run.
// The result has numPartitions partitions, as many as p if left out, in the order of the keys.
func (p PairRDD[K, V]) CombineByKey[C any](create func(V) C, mergeValue func(C, V) C, mergeCombiners func(C, C) C,
	numPartitions ...int) PairRDD[K, C] {
	return PairRDD[K, C]{combine(p.r, "combineByKey", combiner[V, C]{create, mergeValue, mergeCombiners}, numPartitions,
		[]uintptr{entry(create), entry(mergeValue), entry(mergeCombiners)}, nil)}
}

// AggregateByKey folds the values of each key into a C, from zero on. zero is
// copied for each key, so add and merge may change and return their first
// argument.
func (p PairRDD[K, V]) AggregateByKey[C any](zero C, add func(C, V) C, merge func(C, C) C, numPartitions ...int) PairRDD[K, C] {
	fresh, err := cloner(zero)
	return PairRDD[K, C]{combine(p.r, "aggregateByKey", combiner[V, C]{
		create: func(v V) C { return add(fresh(), v) }, add: add, merge: merge,
	}, numPartitions, []uintptr{entry(add), entry(merge)}, err)}
}

// FoldByKey folds the values of each key with f, from zero on. zero is used once
// for each partition that has the key; it should not matter to f.
func (p PairRDD[K, V]) FoldByKey(zero V, f func(V, V) V, numPartitions ...int) PairRDD[K, V] {
	fresh, err := cloner(zero)
	return PairRDD[K, V]{combine(p.r, "foldByKey", combiner[V, V]{
		create: func(v V) V { return f(fresh(), v) }, add: f, merge: f,
	}, numPartitions, []uintptr{entry(f)}, err)}
}

// ReduceByKey combines the values of each key with f, which must be associative
// and commutative.
func (p PairRDD[K, V]) ReduceByKey(f func(V, V) V, numPartitions ...int) PairRDD[K, V] {
	return PairRDD[K, V]{combine(p.r, "reduceByKey", combiner[V, V]{
		create: func(v V) V { return v }, add: f, merge: f,
	}, numPartitions, []uintptr{entry(f)}, nil)}
}

// PartitionBy moves the pairs to the partitions that by says, each in the order
// of its keys. Joins and aggregations by key of what is laid out by the same
// partitioner move nothing again.
func (p PairRDD[K, V]) PartitionBy(by Partitioner[K]) PairRDD[K, V] {
	parent := p.r.base()
	if err := by.check(); err != nil {
		by.lay, by.err = hashLayout(1), err
	} else if parent.layout.like(by.lay) {
		return p
	}
	in, err := lay(p.r, by.lay, by.f)
	if by.err != nil {
		err = by.err
	}
	d := definition{name: "partitionBy", parts: by.lay.n, layout: by.lay, err: err}
	if by.f != nil {
		d.entries = []uintptr{entry(by.f)}
	}
	in.addTo(&d, parent)
	return PairRDD[K, V]{&rdd[Pair[K, V]]{
		node: define(d),
		each: func(i int) iter.Seq[Pair[K, V]] { return allRecords(in, i) },
	}}
}

// allRecords yields the pairs of a keyed input as they come.
func allRecords[K comparable, V any](in *keyed[K, V], p int) iter.Seq[Pair[K, V]] {
	return func(yield func(Pair[K, V]) bool) {
		r := in.open(p)
		for r.next() && yield(Pair[K, V]{r.key(), r.value()}) {
		}
		r.close()
	}
}

func failPartition(p, n int) {
	place := ""
	if t := registry.task.Load(); t != nil && t.reader != nil { // whose partitioner it is
		place = t.reader.name + " at " + t.reader.site
	}
	failAt(place, abi.ErrUser, "the partitioner's function returned "+strconv.Itoa(p)+", not a partition from 0 to "+strconv.Itoa(n-1))
}
