package quern

import (
	"bytes"
	"iter"
)

// CoGrouped is what CoGroup makes: for each key of either side the sequences of
// its values on both.
type CoGrouped[K comparable, V, W any] struct {
	r *rdd[cogroup[K, V, W]]
}

type cogroup[K, V, W any] struct {
	key   K
	left  iter.Seq[V]
	right iter.Seq[W]
}

// both are two pair RDDs, laid out alike, read side by side.
type both[K comparable, V, W any] struct {
	left  *keyed[K, V]
	right *keyed[K, W]
	def   definition
}

// layBoth lays two pair RDDs out alike, after the layout that one of them has
// already if that has the number of partitions asked for.
func layBoth[K comparable, V, W any](l *rdd[Pair[K, V]], r *rdd[Pair[K, W]], name string, asked []int, entries []uintptr) *both[K, V, W] {
	lp, rp := l.base(), r.base()
	n, err := shuffleParts(asked, lp, rp)
	want := hashLayout(n)
	for _, have := range []*layout{lp.layout, rp.layout} {
		// A function's layout can be met only by what has it already.
		if have != nil && (len(asked) == 0 || have.n == n) && (have.reusable() || lp.layout.like(rp.layout)) {
			want = have
			break
		}
	}
	b := &both[K, V, W]{def: definition{name: name, parts: want.n, entries: entries, layout: want}}
	var lerr, rerr error
	b.left, lerr = lay(l, want, nil)
	b.right, rerr = lay(r, want, nil)
	switch {
	case err != nil:
	case lerr != nil:
		err = lerr
	default:
		err = rerr
	}
	b.def.err = err
	b.left.addTo(&b.def, lp)
	b.right.addTo(&b.def, rp)
	return b
}

// merge calls each for every key of either side, in order, until it answers
// false. Both readers stand on the key's first pair, if they have it; each
// leaves them behind its last.
func (b *both[K, V, W]) merge(p int, each func(key []byte, l *records[K, V], r *records[K, W], inLeft, inRight bool) bool) {
	l, r := b.left.open(p), b.right.open(p)
	l.next()
	r.next()
	var key []byte
	for l.more || r.more {
		order := 0
		switch {
		case !r.more:
			order = -1
		case !l.more:
			order = 1
		default:
			order = bytes.Compare(l.bytes, r.bytes)
		}
		if order <= 0 {
			key = append(key[:0], l.bytes...)
		} else {
			key = append(key[:0], r.bytes...)
		}
		if !each(key, l, r, order <= 0, order >= 0) {
			break
		}
	}
	l.close()
	r.close()
}

// CoGroup gathers the values of each key of p and other. Values are streamed.
func (p PairRDD[K, V]) CoGroup[W any](other PairRDD[K, W], numPartitions ...int) CoGrouped[K, V, W] {
	b := layBoth(p.r, other.r, "cogroup", numPartitions, nil)
	return CoGrouped[K, V, W]{&rdd[cogroup[K, V, W]]{
		node: define(b.def),
		each: func(p int) iter.Seq[cogroup[K, V, W]] {
			return func(yield func(cogroup[K, V, W]) bool) {
				b.merge(p, func(key []byte, l *records[K, V], r *records[K, W], inLeft, _ bool) bool {
					var g cogroup[K, V, W]
					if inLeft {
						g.key = l.key()
					} else {
						g.key = r.key()
					}
					var leftDone, rightDone func()
					g.left, leftDone = groupValues(l, key)
					g.right, rightDone = groupValues(r, key)
					more := yield(g)
					leftDone()
					rightDone()
					return more
				})
			}
		},
	}}
}

// MapGroups makes an element of each key's values on both sides. f may range
// over each of the sequences once.
func (g CoGrouped[K, V, W]) MapGroups[R any](f func(K, iter.Seq[V], iter.Seq[W]) R) RDD[R] {
	return RDD[R]{mapElements(g.r, "mapGroups", nil, []uintptr{entry(f)},
		func(g cogroup[K, V, W]) R { return f(g.key, g.left, g.right) })}
}

// FlatMapGroups makes any number of elements of each key's values.
func (g CoGrouped[K, V, W]) FlatMapGroups[R any](f func(K, iter.Seq[V], iter.Seq[W]) []R) RDD[R] {
	return RDD[R]{flatMapElements(g.r, "flatMapGroups", nil, []uintptr{entry(f)},
		func(g cogroup[K, V, W]) []R { return f(g.key, g.left, g.right) })}
}

// MapValues makes one value of each key's values on both sides.
func (g CoGrouped[K, V, W]) MapValues[R any](f func(iter.Seq[V], iter.Seq[W]) R) PairRDD[K, R] {
	return PairRDD[K, R]{mapElements(g.r, "mapValues", g.r.base().layout, []uintptr{entry(f)},
		func(g cogroup[K, V, W]) Pair[K, R] { return Pair[K, R]{g.key, f(g.left, g.right)} })}
}

// CoGroupValues is what CoGrouped.Collect returns for each key.
type CoGroupValues[V, W any] struct {
	Left  []V
	Right []W
}

// Collect returns all keys with their values on both sides.
func (g CoGrouped[K, V, W]) Collect() ([]Pair[K, CoGroupValues[V, W]], error) {
	return collect(mapElements(g.r, "mapValues", nil, nil, func(g cogroup[K, V, W]) Pair[K, CoGroupValues[V, W]] {
		p := Pair[K, CoGroupValues[V, W]]{Key: g.key}
		for v := range g.left {
			p.Value.Left = append(p.Value.Left, v)
		}
		for w := range g.right {
			p.Value.Right = append(p.Value.Right, w)
		}
		return p
	}))
}

// Count returns the number of keys.
func (g CoGrouped[K, V, W]) Count() (int64, error) { return count(g.r) }

// NumPartitions returns the number of partitions.
func (g CoGrouped[K, V, W]) NumPartitions() int { return numPartitions(g.r.base()) }

// Err returns the mistake kept in the grouping, nil if there is none.
func (g CoGrouped[K, V, W]) Err() error { return g.r.base().err }

// join is every join. Of each key, the right side's values are kept in memory
// and the left side's streamed. keepLeft and keepRight say which side's values
// appear without a partner; f then gets false for the missing one.
func join[K comparable, V, W, R any](l *rdd[Pair[K, V]], r *rdd[Pair[K, W]], name string, asked []int, entry uintptr,
	keepLeft, keepRight bool, f func(v V, w W, hasLeft, hasRight bool) R) *rdd[Pair[K, R]] {
	b := layBoth(l, r, name, asked, []uintptr{entry})
	return &rdd[Pair[K, R]]{
		node: define(b.def),
		each: func(p int) iter.Seq[Pair[K, R]] {
			return func(yield func(Pair[K, R]) bool) {
				var rights []W
				b.merge(p, func(key []byte, l *records[K, V], r *records[K, W], inLeft, inRight bool) bool {
					match := inLeft && inRight
					wanted := match || inLeft && keepLeft || inRight && keepRight
					var k K
					if wanted && inLeft {
						k = l.key()
					} else if wanted {
						k = r.key()
					}
					clear(rights)
					rights = rights[:0]
					for r.more && inRight && string(r.bytes) == string(key) {
						if wanted {
							rights = append(rights, r.value())
						}
						r.next()
					}
					var noLeft V
					var noRight W
					if wanted && !inLeft {
						for _, w := range rights {
							if !yield(Pair[K, R]{k, f(noLeft, w, false, true)}) {
								return false
							}
						}
					}
					for l.more && inLeft && string(l.bytes) == string(key) {
						if wanted {
							v := l.value()
							if !inRight && !yield(Pair[K, R]{k, f(v, noRight, true, false)}) {
								return false
							}
							for _, w := range rights {
								if !yield(Pair[K, R]{k, f(v, w, true, true)}) {
									return false
								}
							}
						}
						l.next()
					}
					return true
				})
			}
		},
	}
}

func option[T any](v T, defined bool) Option[T] {
	if defined {
		return Some(v)
	}
	return None[T]()
}

// Join makes a pair of each two pairs of p and other that have the same key,
// with the value that f makes of theirs. other's values of one key are held in
// memory, p's are streamed: put the side with the larger groups first.
func (p PairRDD[K, V]) Join[W, R any](other PairRDD[K, W], f func(V, W) R, numPartitions ...int) PairRDD[K, R] {
	return PairRDD[K, R]{join(p.r, other.r, "join", numPartitions, entry(f), false, false,
		func(v V, w W, _, _ bool) R { return f(v, w) })}
}

// LeftOuterJoin is Join, and keeps the pairs of p without a partner.
func (p PairRDD[K, V]) LeftOuterJoin[W, R any](other PairRDD[K, W], f func(V, Option[W]) R, numPartitions ...int) PairRDD[K, R] {
	return PairRDD[K, R]{join(p.r, other.r, "leftOuterJoin", numPartitions, entry(f), true, false,
		func(v V, w W, _, r bool) R { return f(v, option(w, r)) })}
}

// RightOuterJoin is Join, and keeps the pairs of other without a partner.
func (p PairRDD[K, V]) RightOuterJoin[W, R any](other PairRDD[K, W], f func(Option[V], W) R, numPartitions ...int) PairRDD[K, R] {
	return PairRDD[K, R]{join(p.r, other.r, "rightOuterJoin", numPartitions, entry(f), false, true,
		func(v V, w W, l, _ bool) R { return f(option(v, l), w) })}
}

// FullOuterJoin is Join, and keeps the pairs of both sides without a partner.
func (p PairRDD[K, V]) FullOuterJoin[W, R any](other PairRDD[K, W], f func(Option[V], Option[W]) R, numPartitions ...int) PairRDD[K, R] {
	return PairRDD[K, R]{join(p.r, other.r, "fullOuterJoin", numPartitions, entry(f), true, true,
		func(v V, w W, l, r bool) R { return f(option(v, l), option(w, r)) })}
}
