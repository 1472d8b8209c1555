package quern

import "iter"

// group is one key with its values.
type group[K, V any] struct {
	key    K
	values iter.Seq[V]
}

// Grouped is what GroupByKey makes: for each key the sequence of its values.
type Grouped[K comparable, V any] struct {
	r *rdd[group[K, V]]
}

// onceText is the panic of a group's values that are read outside their time.
const onceText = "quern: the values of a group can be ranged over once, and only inside the function that received them; " +
	"keep them with slices.Collect"

// groupValues is the sequence of the values of the key that in stands on. It
// leaves in on the first pair behind the group. done ends it from outside.
func groupValues[K comparable, V any](in *records[K, V], key []byte) (values iter.Seq[V], done func()) {
	state := 0 // 0 fresh, 1 being read, 2 over
	values = func(yield func(V) bool) {
		if state != 0 {
			panic(onceText)
		}
		state = 1
		for in.more && string(in.bytes) == string(key) {
			v := in.value()
			in.next()
			if !yield(v) {
				return
			}
		}
	}
	return values, func() {
		state = 2
		for in.more && string(in.bytes) == string(key) {
			in.next()
		}
	}
}

// GroupByKey gathers the values of each key. Prefer ReduceByKey or AggregateByKey
// where they do: they move less. Values are streamed, so a group may be larger
// than memory. They come in the order of the partitions.
func (p PairRDD[K, V]) GroupByKey(numPartitions ...int) Grouped[K, V] {
	return Grouped[K, V]{groupByKey(p.r, "groupByKey", numPartitions)}
}

// GroupBy gathers the elements for which f returns the same key.
func (r RDD[T]) GroupBy[K comparable](f func(T) K, numPartitions ...int) Grouped[K, T] {
	return Grouped[K, T]{groupByKey(r.KeyBy(f).r, "groupBy", numPartitions)}
}

func groupByKey[K comparable, V any](in *rdd[Pair[K, V]], name string, asked []int) *rdd[group[K, V]] {
	parent := in.base()
	n, err := shuffleParts(asked, parent)
	want := hashLayout(n)
	if parent.layout != nil && (len(asked) == 0 || parent.layout.n == n) {
		want = parent.layout
	}
	read, kerr := lay(in, want, nil)
	if kerr != nil {
		err = kerr
	}
	d := definition{name: name, parts: want.n, layout: want, err: err}
	read.addTo(&d, parent)
	return &rdd[group[K, V]]{
		node: define(d),
		each: func(p int) iter.Seq[group[K, V]] {
			return func(yield func(group[K, V]) bool) {
				in := read.open(p)
				var key []byte
				in.next()
				for in.more {
					key = append(key[:0], in.bytes...)
					g := group[K, V]{key: in.key()}
					values, done := groupValues(in, key)
					g.values = values
					more := yield(g)
					done()
					if !more {
						break
					}
				}
				in.close()
			}
		},
	}
}

// MapGroups makes an element of each group. f may range over the values once.
func (g Grouped[K, V]) MapGroups[R any](f func(K, iter.Seq[V]) R) RDD[R] {
	return RDD[R]{mapElements(g.r, "mapGroups", nil, []uintptr{entry(f)},
		func(g group[K, V]) R { return f(g.key, g.values) })}
}

// FlatMapGroups makes any number of elements of each group.
func (g Grouped[K, V]) FlatMapGroups[R any](f func(K, iter.Seq[V]) []R) RDD[R] {
	return RDD[R]{flatMapElements(g.r, "flatMapGroups", nil, []uintptr{entry(f)},
		func(g group[K, V]) []R { return f(g.key, g.values) })}
}

// MapValues makes one value of each group's values, keeping the key.
func (g Grouped[K, V]) MapValues[R any](f func(iter.Seq[V]) R) PairRDD[K, R] {
	return PairRDD[K, R]{mapElements(g.r, "mapValues", g.r.base().layout, []uintptr{entry(f)},
		func(g group[K, V]) Pair[K, R] { return Pair[K, R]{g.key, f(g.values)} })}
}

// Keys are the groups' keys.
func (g Grouped[K, V]) Keys() RDD[K] {
	return RDD[K]{mapElements(g.r, "keys", nil, nil, func(g group[K, V]) K { return g.key })}
}

// Collect returns all groups, in the order of partitions and keys.
func (g Grouped[K, V]) Collect() ([]Pair[K, []V], error) {
	whole := mapElements(g.r, "mapValues", nil, nil, func(g group[K, V]) Pair[K, []V] {
		p := Pair[K, []V]{Key: g.key}
		for v := range g.values {
			p.Value = append(p.Value, v)
		}
		return p
	})
	return collect(whole)
}

// Count returns the number of groups, which is that of the keys.
func (g Grouped[K, V]) Count() (int64, error) { return count(g.r) }

// NumPartitions returns the number of partitions.
func (g Grouped[K, V]) NumPartitions() int { return numPartitions(g.r.base()) }

// Err returns the mistake kept in the grouping, nil if there is none.
func (g Grouped[K, V]) Err() error { return g.r.base().err }
