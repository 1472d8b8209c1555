package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

// pairs is a pair RDD: all that elements are, and operations by key.
type pairs[K comparable, V any] struct{ elements[quern.Pair[K, V]] }

func newPairs[K comparable, V any](rdd quern.PairRDD[K, V], want [][]quern.Pair[K, V], placed bool,
	check func(*pipeline, [][]quern.Pair[K, V])) *pairs[K, V] {
	return &pairs[K, V]{elements[quern.Pair[K, V]]{quern.AsRDD(rdd), want, placed, check}}
}

// withValues applies f to each value.
func withValues[K comparable, V, W any](rdd quern.PairRDD[K, V], want [][]quern.Pair[K, V], placed bool, f func(V) W) *pairs[K, W] {
	return newPairs(rdd.MapValues(f), mapped(want, func(v quern.Pair[K, V]) quern.Pair[K, W] {
		return quern.Pair[K, W]{Key: v.Key, Value: f(v.Value)}
	}), placed, nil)
}

func byKey[K comparable, V any](a, b quern.Pair[K, V]) int { return order(a.Key, b.Key) }

// gathered is what operations by key promise: each key in one partition, each
// partition in the order of its keys, the pairs of a key in order.
func gathered[K comparable, V any](rdd quern.PairRDD[K, V], want []quern.Pair[K, V], more func(p *pipeline, i int, k K)) *pairs[K, V] {
	return newPairs(rdd, [][]quern.Pair[K, V]{want}, false, func(p *pipeline, got [][]quern.Pair[K, V]) {
		for i := range got {
			if !slices.IsSortedFunc(got[i], byKey) {
				p.wrong("partition %d is not in order: %#v", i, got[i])
			}
			if more != nil {
				for _, v := range got[i] {
					more(p, i, v.Key)
				}
			}
		}
		all := flat(got)
		slices.SortStableFunc(all, byKey)
		if show(mapped([][]quern.Pair[K, V]{all}, shown)) != show(mapped([][]quern.Pair[K, V]{want}, shown)) {
			p.wrong("the values of a key are in another order:\n%#v\nwant\n%#v", all, want)
		}
		in := map[string]int{}
		for i := range got {
			for _, v := range got[i] {
				if was, ok := in[show(v.Key)]; ok && was != i {
					p.wrong("the key %#v is in two partitions", v.Key)
				}
				in[show(v.Key)] = i
			}
		}
	})
}

// group is one key and its values, in order.
type group[K comparable, V any] struct {
	key    K
	values []V
}

// groups gathers what is in some pairs.
func (e *pairs[K, V]) groups(p *pipeline) []group[K, V] {
	if !e.placed {
		e.settle(p)
	}
	all := slices.Clone(flat(e.want))
	slices.SortStableFunc(all, byKey)
	var out []group[K, V]
	for _, v := range all {
		if len(out) == 0 || order(out[len(out)-1].key, v.Key) != 0 {
			out = append(out, group[K, V]{key: asKey(v.Key)})
		}
		g := &out[len(out)-1]
		g.values = append(g.values, v.Value)
	}
	return out
}

// perKey makes one pair of each group.
func perKey[K comparable, V, W any](groups []group[K, V], f func([]V) W) []quern.Pair[K, W] {
	var out []quern.Pair[K, W]
	for _, g := range groups {
		out = append(out, quern.Pair[K, W]{Key: g.key, Value: f(g.values)})
	}
	return out
}

// plus is associative and not commutative: it tells in which order values met.
func plus[V any](a, b V) V {
	switch a := any(&a).(type) {
	case *word:
		*a += any(b).(word)
		*a = (*a)[:min(len(*a), 1000)]
	case *record:
		b := any(b).(record)
		a.ID += b.ID
		a.Tags = append(slices.Clip(a.Tags), b.Tags...)
		a.Tags = a.Tags[:min(len(a.Tags), 20)]
	}
	return a
}

// sign makes a short word of a value.
func sign[V any](v V) word { return word(fmt.Sprintf("%04x.", number(v)&0xffff)) }

func signs[V any](values []V) word {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(string(sign(v)))
	}
	return word(b.String())
}

func (e *pairs[K, V]) step(p *pipeline) collection {
	rdd := quern.AsPairs(e.rdd)
	asked := []int{p.parts()}
	if p.IntN(2) == 0 {
		asked = nil // keeps a layout that there is
	}
	switch p.IntN(15) {
	case 0:
		p.did("mapValues")
		return withValues(rdd, e.want, e.placed, func(v V) V { return plus(v, v) })
	case 1:
		p.did("filter")
		return newPairs(rdd.Filter(func(k K, v V) bool { return number(v)%4 > 0 }), each(e.want, func(_ int, in []quern.Pair[K, V]) []quern.Pair[K, V] {
			return slices.DeleteFunc(slices.Clone(in), func(v quern.Pair[K, V]) bool { return number(v.Value)%4 == 0 })
		}), e.placed, nil)
	case 2:
		p.did("flatMapValues")
		f := func(v V) []V { return []V{v, v}[:number(v)%3] }
		return newPairs(rdd.FlatMapValues(f), each(e.want, func(_ int, in []quern.Pair[K, V]) (out []quern.Pair[K, V]) {
			for _, v := range in {
				for _, w := range f(v.Value) {
					out = append(out, quern.Pair[K, V]{Key: v.Key, Value: w})
				}
			}
			return out
		}), e.placed, nil)
	case 3, 4, 5:
		return e.combined(p, rdd, asked)
	case 6:
		return partitioned(p, e, rdd)
	case 7:
		return joined(p, e, e, asked)
	case 8: // of two that are laid out, perhaps alike
		return joined(p, partitioned(p, e, rdd), partitioned(p, e, rdd), asked)
	case 9:
		return joined(p, e, keyBy[word, K](p, source[word](p)), asked)
	case 10:
		return joined(p, e, keyBy[int64, K](p, source[int64](p)).step(p), asked)
	case 11:
		p.did("mapToValues")
		f := func(k K, v V) word { return sign(k) + sign(v) }
		return newValues(elements[word]{rdd.Map(f), mapped(e.want, func(v quern.Pair[K, V]) word { return f(v.Key, v.Value) }), e.placed, nil})
	case 12:
		if o, ok := keyBy[word, K](p, source[word](p)).(*pairs[K, V]); ok {
			return &pairs[K, V]{e.union(p, o.elements)}
		}
		return e
	}
	return &pairs[K, V]{e.any(p)}
}

// combined is an aggregation by key.
func (e *pairs[K, V]) combined(p *pipeline, rdd quern.PairRDD[K, V], asked []int) collection {
	groups := e.groups(p)
	switch p.IntN(4) {
	case 0:
		p.did("reduceByKey%v", asked)
		return gathered(rdd.ReduceByKey(plus[V], asked...), perKey(groups, func(values []V) V {
			sum := values[0]
			for _, v := range values[1:] {
				sum = plus(sum, v)
			}
			return sum
		}), nil)
	case 1:
		p.did("aggregateByKey%v", asked)
		return gathered(rdd.AggregateByKey(word(""), func(w word, v V) word { return w + sign(v) }, func(a, b word) word { return a + b }, asked...),
			perKey(groups, signs[V]), nil)
	case 2:
		p.did("combineByKey%v", asked)
		return gathered(rdd.CombineByKey(sign[V], func(w word, v V) word { return w + sign(v) }, func(a, b word) word { return a + b }, asked...),
			perKey(groups, signs[V]), nil)
	}
	p.did("groupByKey%v", asked)
	return gathered(rdd.GroupByKey(asked...).MapValues(func(in iter.Seq[V]) word { return signs(slices.Collect(in)) }),
		perKey(groups, signs[V]), nil)
}

// partitioned lays the pairs out anew.
func partitioned[K comparable, V any](p *pipeline, e *pairs[K, V], rdd quern.PairRDD[K, V]) *pairs[K, V] {
	var want []quern.Pair[K, V]
	for _, g := range e.groups(p) {
		for _, v := range g.values {
			want = append(want, quern.Pair[K, V]{Key: g.key, Value: v})
		}
	}
	n := p.parts()
	switch p.IntN(4) {
	case 0:
		p.did("partitionBy(hash %d)", n)
		return gathered(rdd.PartitionBy(quern.HashPartitioner[K](n)), want, nil)
	case 1:
		var bounds []K
		for range n {
			bounds = append(bounds, value[K](p.Uint64()))
		}
		slices.SortFunc(bounds, order[K])
		p.did("partitionBy(range %d)", n+1)
		return gathered(rdd.PartitionBy(quern.RangePartitioner(bounds...)), want, func(p *pipeline, i int, k K) {
			if i > 0 && order(bounds[i-1], k) > 0 || i < n && order(bounds[i], k) <= 0 {
				p.wrong("the key %#v is in partition %d of %#v", k, i, bounds)
			}
		})
	case 2:
		p.did("partitionBy(func %d)", n)
		f := func(k K) int { return int(number(asKey(k)) % uint64(n)) }
		return gathered(rdd.PartitionBy(quern.FuncPartitioner(n, f)), want, func(p *pipeline, i int, k K) {
			if f(k) != i {
				p.wrong("the key %#v is in partition %d", k, i)
			}
		})
	}
	up := p.IntN(3) > 0
	p.did("sortByKey(%t,%d)", up, n)
	compare := byKey[K, V]
	if !up {
		compare = func(a, b quern.Pair[K, V]) int { return byKey(b, a) }
		slices.SortStableFunc(want, compare)
	}
	return newPairs(rdd.SortByKey(up, n), [][]quern.Pair[K, V]{want}, false, func(p *pipeline, got [][]quern.Pair[K, V]) {
		if len(got) != n {
			p.wrong("%d partitions, want %d", len(got), n)
		}
		inOrder(p, got, want, compare)
	})
}

// joined brings two RDDs together, if the other one has become pairs of the same
// type of keys. Its values become of one type, as joins of all with all would be
// a lot to compile.
func joined[K comparable, V any](p *pipeline, e *pairs[K, V], other collection, asked []int) collection {
	switch o := other.(type) {
	case *pairs[K, word]:
		return join(p, e, o, asked)
	case *pairs[K, record]:
		return join(p, e, withValues(quern.AsPairs(o.rdd), o.want, o.placed, sign[record]), asked)
	}
	return e
}

func join[K comparable, V any](p *pipeline, l *pairs[K, V], r *pairs[K, word], asked []int) collection {
	lefts, rights := l.groups(p), r.groups(p)
	size := 0
	eachKey(lefts, rights, func(_ K, v []V, w []word) { size += max(len(v), 1) * max(len(w), 1) })
	if size > 3000 {
		return l
	}
	left, right := quern.AsPairs(l.rdd), quern.AsPairs(r.rdd)
	both := func(v V, w word) word { return sign(v) + sign(w) }
	maybeLeft := func(v quern.Option[V], w word) word { return optional(v) + sign(w) }
	maybeRight := func(v V, w quern.Option[word]) word { return sign(v) + optional(w) }
	maybe := func(v quern.Option[V], w quern.Option[word]) word { return optional(v) + optional(w) }
	switch kind := p.IntN(5); kind {
	case 0:
		p.did("join%v", asked)
		return gathered(left.Join(right, both, asked...), pairUp(lefts, rights, false, false, maybe), nil)
	case 1:
		p.did("leftOuterJoin%v", asked)
		return gathered(left.LeftOuterJoin(right, maybeRight, asked...), pairUp(lefts, rights, true, false, maybe), nil)
	case 2:
		p.did("rightOuterJoin%v", asked)
		return gathered(left.RightOuterJoin(right, maybeLeft, asked...), pairUp(lefts, rights, false, true, maybe), nil)
	case 3:
		p.did("fullOuterJoin%v", asked)
		return gathered(left.FullOuterJoin(right, maybe, asked...), pairUp(lefts, rights, true, true, maybe), nil)
	}
	p.did("cogroup%v", asked)
	backwards := p.IntN(2) == 0 // which is read first does not matter
	var want []quern.Pair[K, word]
	eachKey(lefts, rights, func(k K, l []V, r []word) {
		want = append(want, quern.Pair[K, word]{Key: k, Value: signs(l) + "|" + signs(r)})
	})
	return gathered(left.CoGroup(right, asked...).MapValues(func(v iter.Seq[V], w iter.Seq[word]) word {
		if backwards {
			r := signs(slices.Collect(w))
			return signs(slices.Collect(v)) + "|" + r
		}
		return signs(slices.Collect(v)) + "|" + signs(slices.Collect(w))
	}), want, nil)
}

func optional[V any](o quern.Option[V]) word {
	if v, ok := o.Get(); ok {
		return sign(v)
	}
	return "none."
}

// eachKey calls f with each key of either side.
func eachKey[K comparable, V, W any](l []group[K, V], r []group[K, W], f func(K, []V, []W)) {
	for len(l) > 0 || len(r) > 0 {
		c := 0
		switch {
		case len(r) == 0:
			c = -1
		case len(l) == 0:
			c = 1
		default:
			c = order(l[0].key, r[0].key)
		}
		var k K
		var v []V
		var w []W
		if c <= 0 {
			k, v, l = l[0].key, l[0].values, l[1:]
		}
		if c >= 0 {
			k, w, r = r[0].key, r[0].values, r[1:]
		}
		f(k, v, w)
	}
}

// pairUp is every join.
func pairUp[K comparable, V, W any](l []group[K, V], r []group[K, W], keepLeft, keepRight bool,
	f func(quern.Option[V], quern.Option[W]) word) (out []quern.Pair[K, word]) {
	eachKey(l, r, func(k K, left []V, right []W) {
		for _, v := range left {
			if len(right) == 0 && keepLeft {
				out = append(out, quern.Pair[K, word]{Key: k, Value: f(quern.Some(v), quern.None[W]())})
			}
			for _, w := range right {
				out = append(out, quern.Pair[K, word]{Key: k, Value: f(quern.Some(v), quern.Some(w))})
			}
		}
		for _, w := range right {
			if len(left) == 0 && keepRight {
				out = append(out, quern.Pair[K, word]{Key: k, Value: f(quern.None[V](), quern.Some(w))})
			}
		}
	})
	return out
}
