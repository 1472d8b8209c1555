package quern

import (
	"iter"
	"unsafe"
)

// PairRDD is an RDD of keys with values. It is a small value; copy it freely.
type PairRDD[K comparable, V any] struct {
	r *rdd[Pair[K, V]]
}

// AsPairs makes a PairRDD of an RDD of pairs.
func AsPairs[K comparable, V any](r RDD[Pair[K, V]]) PairRDD[K, V] { return PairRDD[K, V]{r.r} }

// AsRDD makes an RDD of pairs of a PairRDD, for what only an RDD can do.
func AsRDD[K comparable, V any](p PairRDD[K, V]) RDD[Pair[K, V]] { return RDD[Pair[K, V]]{p.r} }

// Err returns the mistake kept in the RDD, nil if there is none.
func (p PairRDD[K, V]) Err() error { return p.r.base().err }

// NumPartitions returns the number of partitions, 0 for an RDD in error.
func (p PairRDD[K, V]) NumPartitions() int { return numPartitions(p.r.base()) }

// Map makes an element of each pair.
func (p PairRDD[K, V]) Map[R any](f func(K, V) R) RDD[R] {
	return RDD[R]{mapElements(p.r, "map", nil, []uintptr{entry(f)}, func(v Pair[K, V]) R { return f(v.Key, v.Value) })}
}

// FlatMap makes any number of elements of each pair.
func (p PairRDD[K, V]) FlatMap[R any](f func(K, V) []R) RDD[R] {
	return RDD[R]{flatMapElements(p.r, "flatMap", nil, []uintptr{entry(f)},
		func(v Pair[K, V]) []R { return f(v.Key, v.Value) })}
}

// MapToPair makes another pair of each pair. Where the key stays, MapValues is
// better: it keeps the partitioning.
func (p PairRDD[K, V]) MapToPair[L comparable, W any](f func(K, V) (L, W)) PairRDD[L, W] {
	return PairRDD[L, W]{narrow(p.r, "mapToPair", []uintptr{entry(f)}, func(_ int, in iter.Seq[Pair[K, V]]) iter.Seq[Pair[L, W]] {
		return func(yield func(Pair[L, W]) bool) {
			in(func(v Pair[K, V]) bool {
				key, value := f(v.Key, v.Value)
				return yield(Pair[L, W]{key, value})
			})
		}
	})}
}

// MapPartitions applies f to each partition as a whole. The sequence that f
// receives can be ranged over once.
func (p PairRDD[K, V]) MapPartitions[R any](f func(iter.Seq2[K, V]) iter.Seq[R]) RDD[R] {
	return RDD[R]{narrow(p.r, "mapPartitions", []uintptr{entry(f)}, func(_ int, in iter.Seq[Pair[K, V]]) iter.Seq[R] {
		return f(seq2(in))
	})}
}

func seq2[K, V any](in iter.Seq[Pair[K, V]]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		in(func(v Pair[K, V]) bool { return yield(v.Key, v.Value) })
	}
}

// Filter keeps the pairs for which keep is true.
func (p PairRDD[K, V]) Filter(keep func(K, V) bool) PairRDD[K, V] {
	return PairRDD[K, V]{filterElements(p.r, []uintptr{entry(keep)},
		func(v Pair[K, V]) bool { return keep(v.Key, v.Value) })}
}

// MapValues applies f to each value and keeps the keys where they are.
func (p PairRDD[K, V]) MapValues[W any](f func(V) W) PairRDD[K, W] {
	return PairRDD[K, W]{narrowLaid(p.r, "mapValues", p.r.base().layout, []uintptr{entry(f)},
		func(_ int, in iter.Seq[Pair[K, V]]) iter.Seq[Pair[K, W]] {
			return func(yield func(Pair[K, W]) bool) {
				in(func(v Pair[K, V]) bool { return yield(Pair[K, W]{v.Key, f(v.Value)}) })
			}
		})}
}

// FlatMapValues makes any number of values of each, with the same key.
func (p PairRDD[K, V]) FlatMapValues[W any](f func(V) []W) PairRDD[K, W] {
	return PairRDD[K, W]{narrowLaid(p.r, "flatMapValues", p.r.base().layout, []uintptr{entry(f)},
		func(_ int, in iter.Seq[Pair[K, V]]) iter.Seq[Pair[K, W]] {
			return func(yield func(Pair[K, W]) bool) {
				in(func(v Pair[K, V]) bool {
					for _, w := range f(v.Value) {
						if !yield(Pair[K, W]{v.Key, w}) {
							return false
						}
					}
					return true
				})
			}
		})}
}

// Keys are the keys of all pairs.
func (p PairRDD[K, V]) Keys() RDD[K] {
	return RDD[K]{mapElements(p.r, "keys", nil, nil, func(v Pair[K, V]) K { return v.Key })}
}

// Values are the values of all pairs.
func (p PairRDD[K, V]) Values() RDD[V] {
	return RDD[V]{mapElements(p.r, "values", nil, nil, func(v Pair[K, V]) V { return v.Value })}
}

// Union is the pairs of p and then those of the others.
func (p PairRDD[K, V]) Union(others ...PairRDD[K, V]) PairRDD[K, V] {
	all := []*rdd[Pair[K, V]]{p.r}
	for _, o := range others {
		all = append(all, o.r)
	}
	return PairRDD[K, V]{union(all)}
}

// Distinct keeps one of each group of equal pairs.
func (p PairRDD[K, V]) Distinct(numPartitions ...int) PairRDD[K, V] {
	return PairRDD[K, V]{distinct(p.r, numPartitions)}
}

// Repartition spreads the pairs evenly over n partitions.
func (p PairRDD[K, V]) Repartition(n int) PairRDD[K, V] { return PairRDD[K, V]{repartition(p.r, n)} }

// Coalesce lowers the number of partitions to n by joining neighbours.
func (p PairRDD[K, V]) Coalesce(n int) PairRDD[K, V] { return PairRDD[K, V]{coalesce(p.r, n)} }

// Collect returns all pairs, in the order of the partitions.
func (p PairRDD[K, V]) Collect() ([]Pair[K, V], error) { return collect(p.r) }

// CollectAsMap returns all pairs as a map; of equal keys the last one stays.
func (p PairRDD[K, V]) CollectAsMap() (map[K]V, error) {
	c, _ := keyCodecOf[K](false)
	all := keyMap[K, V]{values: map[K]V{}, codec: c}
	err := gather(p.r, "collectAsMap", nil, func(_ int, in iter.Seq[Pair[K, V]], send func(Pair[K, V])) {
		in(func(v Pair[K, V]) bool { send(v); return true })
	}, func(_ int, v Pair[K, V]) { all.put(v, func(V) V { return v.Value }) })
	if err != nil {
		return nil, err
	}
	return all.whole(), nil
}

// Lookup returns the values of one key, in the order of the partitions.
func (p PairRDD[K, V]) Lookup(key K) ([]V, error) {
	values := []V{}
	same := func(k K) bool { return k == key }
	if c, err := keyCodecOf[K](false); err == nil && key != key { // with NaN in it
		encoded := func(k K) string {
			var e encoder
			c.enc(&e, unsafe.Pointer(&k))
			return string(e.b)
		}
		want := encoded(key)
		same = func(k K) bool { return k != k && encoded(k) == want }
	}
	err := gather(p.r, "lookup", nil, func(_ int, in iter.Seq[Pair[K, V]], send func(V)) {
		in(func(v Pair[K, V]) bool {
			if same(v.Key) {
				send(v.Value)
			}
			return true
		})
	}, func(_ int, v V) { values = append(values, v) })
	if err != nil {
		return nil, err
	}
	return values, nil
}

// Count returns the number of pairs.
func (p PairRDD[K, V]) Count() (int64, error) { return count(p.r) }

// CountByKey returns how many pairs each key has.
func (p PairRDD[K, V]) CountByKey() (map[K]int64, error) {
	return countBy(p.r, "countByKey", func(v Pair[K, V]) K { return v.Key })
}

// First returns the first pair. An empty RDD is ErrEmpty.
func (p PairRDD[K, V]) First() (Pair[K, V], error) { return first(p.r) }

// Take returns the first n pairs; see RDD.Take.
func (p PairRDD[K, V]) Take(n int) ([]Pair[K, V], error) { return take(p.r, "take", n) }

// Top returns the n largest pairs in the order of compare, the largest first.
func (p PairRDD[K, V]) Top(n int, compare func(a, b Pair[K, V]) int) ([]Pair[K, V], error) {
	return top(p.r, n, compare)
}

// TakeOrdered returns the n smallest pairs in the order of compare.
func (p PairRDD[K, V]) TakeOrdered(n int, compare func(a, b Pair[K, V]) int) ([]Pair[K, V], error) {
	return takeOrdered(p.r, "takeOrdered", n, entry(compare), compare)
}

// IsEmpty says whether there are no pairs.
func (p PairRDD[K, V]) IsEmpty() (bool, error) { return isEmpty(p.r) }

// Foreach calls f with each pair, in tasks.
func (p PairRDD[K, V]) Foreach(f func(K, V)) error {
	return foreach(p.r, "foreach", entry(f), func(in iter.Seq[Pair[K, V]]) {
		in(func(v Pair[K, V]) bool { f(v.Key, v.Value); return true })
	})
}

// ForeachPartition calls f with each partition, in tasks.
func (p PairRDD[K, V]) ForeachPartition(f func(iter.Seq2[K, V])) error {
	return foreach(p.r, "foreachPartition", entry(f), func(in iter.Seq[Pair[K, V]]) { f(seq2(in)) })
}

// SaveAsTextFile writes a line "(key,value)" for each pair; see RDD.SaveAsTextFile.
func (p PairRDD[K, V]) SaveAsTextFile(path string, compression ...Compression) error {
	return saveAsTextFile(p.r, path, compression)
}
