package main

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

// elements is an RDD and what should be in it. If placed is false, want says
// nothing about order and partitions; what is promised of them, check looks at.
type elements[T any] struct {
	rdd    quern.RDD[T]
	want   [][]T
	placed bool
	check  func(p *pipeline, got [][]T)
}

// values are elements that are not pairs.
type values[T any] struct{ elements[T] }

func newValues[T any](e elements[T]) collection { return &values[T]{e} }

func source[T any](p *pipeline) *values[T] {
	n := []int{0, 1, 3, 20, 100, 300}[p.IntN(6)]
	all := make([]T, n)
	for i := range all {
		all[i] = value[T](p.Uint64() >> p.IntN(60))
	}
	parts := p.parts()
	p.did("parallelize[%T](%d,%d)", *new(T), n, parts)
	return &values[T]{elements[T]{p.ctx.Parallelize(all, parts), cut(all, parts), true, nil}}
}

func (e *elements[T]) settle(p *pipeline) {
	type placed struct {
		P int
		V T
	}
	all, err := e.rdd.MapPartitionsWithIndex(func(i int, in iter.Seq[T]) iter.Seq[placed] {
		return func(yield func(placed) bool) {
			for v := range in {
				if !yield(placed{i, v}) {
					return
				}
			}
		}
	}).Collect()
	p.no(err)
	got := make([][]T, e.rdd.NumPartitions())
	for _, v := range all {
		got[v.P] = append(got[v.P], v.V)
	}
	if !e.placed {
		if !sameElements(flat(got), flat(e.want)) {
			p.wrong("it has other elements:\n%#v\nwant\n%#v", got, e.want)
		}
		if e.check != nil {
			e.check(p, got)
		}
		e.want, e.placed, e.check = got, true, nil
	}
	p.answered("collect", mapped(got, shown), mapped(e.want, shown))
}

func (e *values[T]) step(p *pipeline) collection {
	switch p.IntN(12) {
	case 0:
		return mapTo[T, int64](p, e)
	case 1:
		return mapTo[T, word](p, e)
	case 2:
		return mapTo[T, point](p, e)
	case 3:
		return mapTo[T, record](p, e)
	case 4:
		p.did("flatMap")
		f := func(v T) []T { return []T{v, value[T](number(v)), v}[:number(v)%4] }
		return newValues(elements[T]{e.rdd.FlatMap(f), each(e.want, func(_ int, in []T) (out []T) {
			for _, v := range in {
				out = append(out, f(v)...)
			}
			return out
		}), e.placed, nil})
	case 5:
		return newValues(e.union(p, source[T](p).elements))
	case 6, 7:
		if isKey[T]() {
			return newValues(e.byElement(p))
		}
		return keyBy[T, point](p, e)
	case 8:
		return keyBy[T, point](p, e)
	case 9:
		return keyBy[T, word](p, e)
	}
	return newValues(e.any(p))
}

// any is an operation on elements of any type.
func (e *elements[T]) any(p *pipeline) elements[T] {
	switch p.IntN(3) {
	case 0:
		k := p.Uint64()
		keep := func(v T) bool { return (number(v)^k)%3 > 0 }
		p.did("filter")
		return elements[T]{e.rdd.Filter(keep), each(e.want, func(_ int, in []T) []T {
			return slices.DeleteFunc(slices.Clone(in), func(v T) bool { return !keep(v) })
		}), e.placed, nil}
	case 1:
		return e.moved(p)
	}
	return e.byPosition(p)
}

// union is both, and perhaps one of them twice.
func (e *elements[T]) union(p *pipeline, o elements[T]) elements[T] {
	p.did("union")
	if p.IntN(2) == 0 {
		return elements[T]{e.rdd.Union(o.rdd, e.rdd), slices.Concat(e.want, o.want, e.want), e.placed && o.placed, nil}
	}
	return elements[T]{o.rdd.Union(e.rdd), slices.Concat(o.want, e.want), e.placed && o.placed, nil}
}

func mapTo[T, R any](p *pipeline, e *values[T]) collection {
	k := p.Uint64() >> p.IntN(60)
	f := func(v T) R { return value[R](number(v) % (k | 7)) }
	p.did("map[%T]", *new(R))
	return newValues(elements[R]{e.rdd.Map(f), mapped(e.want, f), e.placed, nil})
}

// moved puts elements into other partitions.
func (e *elements[T]) moved(p *pipeline) elements[T] {
	n := p.parts()
	if p.IntN(2) == 0 {
		p.did("repartition(%d)", n)
		before := max(e.rdd.NumPartitions(), 1)
		return elements[T]{e.rdd.Repartition(n), e.want, false, func(p *pipeline, got [][]T) {
			all := len(flat(got))
			for i := range got {
				if d := len(got[i])*n - all; d > before*n || d < -before*n {
					p.wrong("partition %d has %d of %d elements", i, len(got[i]), all)
				}
			}
		}}
	}
	p.did("coalesce(%d)", n)
	want := e.want
	if e.placed && n < len(want) {
		want = make([][]T, n)
		for i := range want {
			want[i] = flat(e.want[i*len(e.want)/n : (i+1)*len(e.want)/n])
		}
	}
	return elements[T]{e.rdd.Coalesce(n), want, e.placed, nil}
}

// byPosition is an operation to which it matters where elements are.
func (e *elements[T]) byPosition(p *pipeline) elements[T] {
	if !e.placed {
		e.settle(p)
	}
	seed := p.Uint64()
	switch p.IntN(3) {
	case 0:
		p.did("sample")
		return elements[T]{e.rdd.Sample(0.6, seed), each(e.want, func(i int, in []T) []T {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			return slices.DeleteFunc(slices.Clone(in), func(T) bool { return random.Float64() >= 0.6 })
		}), true, nil}
	case 1:
		p.did("mapPartitionsWithIndex")
		every := 1 + int(seed%3)
		return elements[T]{e.rdd.MapPartitionsWithIndex(func(i int, in iter.Seq[T]) iter.Seq[T] {
			return func(yield func(T) bool) {
				n := i
				for v := range in {
					if n++; n%every == 0 && !yield(v) {
						return
					}
				}
			}
		}), each(e.want, func(i int, in []T) (out []T) {
			for j, v := range in {
				if (i+j+1)%every == 0 {
					out = append(out, v)
				}
			}
			return out
		}), true, nil}
	}
	p.did("mapPartitions") // backwards, and only the first 50
	const most = 50
	turn := func(in []T) []T {
		in = slices.Clone(in[:min(len(in), most)])
		slices.Reverse(in)
		return in
	}
	return elements[T]{e.rdd.MapPartitions(func(in iter.Seq[T]) iter.Seq[T] {
		var all []T
		for v := range in {
			if all = append(all, v); len(all) == most {
				break
			}
		}
		return slices.Values(turn(all))
	}), each(e.want, func(_ int, in []T) []T { return turn(in) }), true, nil}
}

// byElement is an operation whose keys are the elements themselves.
func (e *elements[T]) byElement(p *pipeline) elements[T] {
	n := p.parts()
	if p.IntN(2) == 0 {
		p.did("distinct(%d)", n)
		all := flat(mapped(e.want, asKey))
		slices.SortStableFunc(all, order[T])
		all = slices.CompactFunc(all, func(a, b T) bool { return order(a, b) == 0 })
		return elements[T]{e.rdd.Distinct(n), [][]T{all}, false, func(p *pipeline, got [][]T) {
			for i := range got {
				if !slices.IsSortedFunc(got[i], order[T]) {
					p.wrong("partition %d is not in order: %#v", i, got[i])
				}
			}
		}}
	}
	if !e.placed {
		e.settle(p)
	}
	k, up := p.Uint64(), p.IntN(2) == 0
	by := func(v T) T { return value[T]((number(v) ^ k) % 300) }
	p.did("sortBy(%t,%d)", up, n)
	all := slices.Clone(flat(e.want))
	compare := func(a, b T) int {
		if up {
			return order(by(a), by(b))
		}
		return order(by(b), by(a))
	}
	slices.SortStableFunc(all, compare)
	return elements[T]{e.rdd.SortBy(by, up, n), [][]T{all}, false, func(p *pipeline, got [][]T) {
		if len(got) != n {
			p.wrong("%d partitions, want %d", len(got), n)
		}
		inOrder(p, got, all, compare)
	}}
}

func shown[T any](v T) string { return show(v) }

// inOrder checks that partitions one after the other are all elements in order,
// and that no two equal ones are in different partitions.
func inOrder[T any](p *pipeline, got [][]T, all []T, compare func(a, b T) int) {
	if g := flat(got); show(mapped([][]T{g}, shown)) != show(mapped([][]T{all}, shown)) {
		p.wrong("it is in another order:\n%#v\nwant\n%#v", got, all)
	}
	var last []T
	for i := range got {
		if len(last) > 0 && len(got[i]) > 0 && compare(last[len(last)-1], got[i][0]) == 0 {
			p.wrong("%#v is in partition %d and in one before", got[i][0], i)
		}
		if len(got[i]) > 0 {
			last = got[i]
		}
	}
}

func keyBy[T any, K comparable](p *pipeline, e *values[T]) collection {
	k := p.Uint64() >> p.IntN(60)
	few := 1 + p.Uint64N(40)
	f := func(v T) K { return value[K]((number(v) ^ k) % few) }
	p.did("keyBy[%T](%d)", *new(K), few)
	rdd := e.rdd.KeyBy(f)
	want := mapped(e.want, func(v T) quern.Pair[K, T] { return quern.Pair[K, T]{Key: f(v), Value: v} })
	// Values are of few types, or types without end would have to be compiled.
	if p.IntN(2) == 0 {
		return withValues(rdd, want, e.placed, func(v T) record { return value[record](number(v)) })
	}
	return withValues(rdd, want, e.placed, func(v T) word { return value[word](number(v)) })
}

func (e *elements[T]) ask(p *pipeline) {
	all := flat(e.want)
	byNumber := func(a, b T) int { return strings.Compare(show(a), show(b)) }
	switch what := p.IntN(9); what {
	case 0:
		got, err := e.rdd.Count()
		p.no(err)
		p.answered("count", got, int64(len(all)))
	case 1:
		n := p.IntN(60)
		got, err := e.rdd.Take(n)
		p.no(err)
		p.answered("take", mapped([][]T{got}, shown), mapped([][]T{all[:min(n, len(all))]}, shown))
	case 2:
		got, err := e.rdd.Top(5, byNumber)
		p.no(err)
		slices.SortStableFunc(all, func(a, b T) int { return byNumber(b, a) })
		p.answered("top", mapped([][]T{got}, shown), mapped([][]T{all[:min(5, len(all))]}, shown))
	case 3:
		got, err := e.rdd.TakeOrdered(7, byNumber)
		p.no(err)
		slices.SortStableFunc(all, byNumber)
		p.answered("takeOrdered", mapped([][]T{got}, shown), mapped([][]T{all[:min(7, len(all))]}, shown))
	case 4:
		got, err := e.rdd.Aggregate([]string{}, func(s []string, v T) []string { return append(s, show(v)) },
			func(a, b []string) []string { return append(a, b...) })
		p.no(err)
		want := []string{}
		for _, v := range all {
			want = append(want, show(v))
		}
		p.answered("aggregate", got, want)
	case 5:
		got, err := quern.Sum(e.rdd.Map(func(v T) uint64 { return number(v) }))
		p.no(err)
		want := uint64(0)
		for _, v := range all {
			want += number(v)
		}
		p.answered("sum", got, want)
	case 6:
		got, err := quern.CountByValue(e.rdd.Map(shown[T]))
		p.no(err)
		want := map[string]int64{}
		for _, v := range all {
			want[show(v)]++
		}
		p.answered("countByValue", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		for _, k := range slices.Sorted(maps.Keys(want)) {
			p.answered(k, got[k], want[k])
		}
	case 7:
		if p.save == "" {
			return
		}
		p.saved++
		folder := path.Join(p.save, fmt.Sprint(p.saved))
		lines := e.rdd.Map(func(v T) string { return fmt.Sprintf("%q", show(v)) })
		p.no(lines.SaveAsTextFile(folder, []quern.Compression{quern.Plain, quern.Gzip}[p.IntN(2)]))
		got, err := p.ctx.TextFile(folder, p.parts()).Collect()
		p.no(err)
		p.answered("saveAsTextFile", got, mapped([][]T{all}, func(v T) string { return fmt.Sprintf("%q", show(v)) })[0])
	default:
		got, err := e.rdd.Map(shown[T]).Reduce(func(a, b string) string { return a + "," + b })
		if len(all) == 0 {
			p.answered("reduce", err != nil, true)
			return
		}
		p.no(err)
		p.answered("reduce", got, strings.Join(flat(mapped(e.want, shown)), ","))
	}
}
