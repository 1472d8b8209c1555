package quern_test

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/quern"
)

// testing.T and rapid.T
type tester interface {
	Helper()
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func openContext(t tester) *quern.Context {
	t.Helper()
	ctx, err := quern.NewContext(quern.AppName("test"), quern.Conf("quern.default.parallelism", "3"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return ctx
}

// result unwraps the result of an action.
func result[T any](t tester) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v", err)
		}
		return v
	}
}

func equal[T any](t tester, what string, want, got T) {
	t.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// world is data in an RDD and as slices.
type world struct {
	t     *rapid.T
	ctx   *quern.Context
	ints  []int
	r     quern.RDD[int]
	pairs []quern.Pair[string, int]
	p     quern.PairRDD[string, int]
	n     int // partitions for shuffles
}

type pair = quern.Pair[string, int]

func check(t *testing.T, f func(w *world)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, ctx: openContext(t), n: rapid.IntRange(1, 5).Draw(t, "n")}
		w.ints = rapid.SliceOfN(rapid.IntRange(-9, 9), 0, 30).Draw(t, "ints")
		w.r = w.ctx.Parallelize(w.ints, rapid.IntRange(1, 5).Draw(t, "partitions"))
		w.pairs = w.drawPairs("pairs")
		w.p = quern.AsPairs(w.ctx.Parallelize(w.pairs, rapid.IntRange(1, 5).Draw(t, "partitions of pairs")))
		f(w)
	})
}

func (w *world) drawPairs(name string) []pair {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
		return pair{Key: rapid.SampledFrom([]string{"", "a", "b", "c", "a\x00", "longer than a word"}).Draw(t, "k"),
			Value: rapid.IntRange(0, 9).Draw(t, "v")}
	}), 0, 20).Draw(w.t, name)
}

func byKey(pairs []pair) map[string][]int {
	m := map[string][]int{}
	for _, p := range pairs {
		m[p.Key] = append(m[p.Key], p.Value)
	}
	return m
}

func sortedPairs[V any](pairs []quern.Pair[string, V]) []quern.Pair[string, V] {
	s := slices.Clone(pairs)
	slices.SortStableFunc(s, func(a, b quern.Pair[string, V]) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(fmt.Sprint(a.Value), fmt.Sprint(b.Value)))
	})
	return s
}

func TestNarrowTransformations(t *testing.T) {
	check(t, func(w *world) {
		double := func(v int) int { return 2 * v }
		even := func(v int) bool { return v%2 == 0 }
		repeat := func(v int) []int { return slices.Repeat([]int{v}, max(v, 0)) }
		var mapped, filtered, repeated []int
		for _, v := range w.ints {
			mapped = append(mapped, double(v))
			repeated = append(repeated, repeat(v)...)
			if even(v) {
				filtered = append(filtered, v)
			}
		}
		equal(w.t, "map", mapped, result[[]int](w.t)(w.r.Map(double).Collect()))
		equal(w.t, "filter", filtered, result[[]int](w.t)(w.r.Filter(even).Collect()))
		equal(w.t, "flatMap", repeated, result[[]int](w.t)(w.r.FlatMap(repeat).Collect()))
		equal(w.t, "flatMapSeq", repeated, result[[]int](w.t)(w.r.FlatMapSeq(func(v int) iter.Seq[int] {
			return slices.Values(repeat(v))
		}).Collect()))
		equal(w.t, "union", append(slices.Clone(w.ints), mapped...), result[[]int](w.t)(w.r.Union(w.r.Map(double)).Collect()))
		equal(w.t, "coalesce", w.ints, result[[]int](w.t)(w.r.Coalesce(w.n).Collect()))
		equal(w.t, "partitions of coalesce", min(w.n, w.r.NumPartitions()), w.r.Coalesce(w.n).NumPartitions())
		sizes := w.r.MapPartitionsWithIndex(func(i int, in iter.Seq[int]) iter.Seq[quern.Pair[int, int]] {
			n := 0
			for range in {
				n++
			}
			return slices.Values([]quern.Pair[int, int]{{Key: i, Value: n}})
		})
		total := 0
		for i, p := range result[[]quern.Pair[int, int]](w.t)(sizes.Collect()) {
			equal(w.t, "partition", i, p.Key)
			total += p.Value
		}
		equal(w.t, "sum of the partitions' sizes", len(w.ints), total)
		firstOfEach := w.r.MapPartitions(func(in iter.Seq[int]) iter.Seq[int] {
			return func(yield func(int) bool) {
				for v := range in {
					yield(v)
					return
				}
			}
		})
		if got := result[[]int](w.t)(firstOfEach.Collect()); len(w.ints) > 0 && got[0] != w.ints[0] {
			w.t.Fatalf("the first of the first partition is %d, not %d", got[0], w.ints[0])
		}
		sample := result[[]int](w.t)(w.r.Sample(0.5, 7).Collect())
		equal(w.t, "a sample, computed again", sample, result[[]int](w.t)(w.r.Sample(0.5, 7).Collect()))
		equal(w.t, "a full sample", w.ints, result[[]int](w.t)(w.r.Sample(1, 7).Collect()))
		equal(w.t, "an empty sample", nil, result[[]int](w.t)(w.r.Sample(0, 7).Collect()))
	})
}

func TestActions(t *testing.T) {
	check(t, func(w *world) {
		add := func(a, b int) int { return a + b }
		sum := 0
		counts := map[int]int64{}
		for _, v := range w.ints {
			sum += v
			counts[v]++
		}
		equal(w.t, "collect", w.ints, result[[]int](w.t)(w.r.Collect()))
		equal(w.t, "count", int64(len(w.ints)), result[int64](w.t)(w.r.Count()))
		equal(w.t, "sum", sum, result[int](w.t)(quern.Sum(w.r)))
		equal(w.t, "fold", sum, result[int](w.t)(w.r.Fold(0, add)))
		equal(w.t, "countByValue", counts, result[map[int]int64](w.t)(quern.CountByValue(w.r)))
		equal(w.t, "isEmpty", len(w.ints) == 0, result[bool](w.t)(w.r.IsEmpty()))
		equal(w.t, "aggregate", fmt.Sprint(w.ints), result[string](w.t)(func() (string, error) {
			all, err := w.r.Aggregate([]int{}, func(s []int, v int) []int { return append(s, v) },
				func(a, b []int) []int { return append(a, b...) })
			return fmt.Sprint(all), err
		}()))
		n := rapid.IntRange(0, 35).Draw(w.t, "take")
		equal(w.t, "take", w.ints[:min(n, len(w.ints))], result[[]int](w.t)(w.r.Take(n)))
		ascending := slices.Sorted(slices.Values(w.ints))
		descending := slices.Clone(ascending)
		slices.Reverse(descending)
		equal(w.t, "takeOrdered", ascending[:min(n, len(w.ints))], result[[]int](w.t)(w.r.TakeOrdered(n, cmp.Compare)))
		equal(w.t, "top", descending[:min(n, len(w.ints))], result[[]int](w.t)(w.r.Top(n, cmp.Compare)))
		if len(w.ints) > 0 {
			equal(w.t, "reduce", sum, result[int](w.t)(w.r.Reduce(add)))
			equal(w.t, "first", w.ints[0], result[int](w.t)(w.r.First()))
			equal(w.t, "max", slices.Max(w.ints), result[int](w.t)(quern.Max(w.r)))
			equal(w.t, "min", slices.Min(w.ints), result[int](w.t)(quern.Min(w.r)))
			return
		}
		_, reduce := w.r.Reduce(add)
		_, first := w.r.First()
		_, largest := quern.Max(w.r)
		_, smallest := quern.Min(w.r)
		for _, err := range []error{reduce, first, largest, smallest} {
			if !errors.Is(err, quern.ErrEmpty) {
				w.t.Fatalf("of nothing: %v", err)
			}
		}
	})
}

func TestTopKeepsTheFirstOfEqualElements(t *testing.T) {
	check(t, func(w *world) {
		n := rapid.IntRange(0, 25).Draw(w.t, "top")
		want := slices.Clone(w.pairs)
		slices.SortStableFunc(want, func(a, b pair) int { return cmp.Compare(b.Value, a.Value) })
		equal(w.t, "top", want[:min(n, len(want))],
			result[[]pair](w.t)(w.p.Top(n, func(a, b pair) int { return cmp.Compare(a.Value, b.Value) })))
	})
}

func TestShufflesOfElements(t *testing.T) {
	check(t, func(w *world) {
		spread := w.r.Repartition(w.n)
		equal(w.t, "partitions", w.n, spread.NumPartitions())
		ascending := slices.Sorted(slices.Values(w.ints))
		equal(w.t, "repartition", ascending, slices.Sorted(slices.Values(result[[]int](w.t)(spread.Collect()))))
		equal(w.t, "distinct", slices.Compact(slices.Clone(ascending)),
			slices.Sorted(slices.Values(result[[]int](w.t)(w.r.Distinct(w.n).Collect()))))
		parity := func(v int) int { return v & 1 }
		groups := map[int][]int{}
		for _, v := range w.ints {
			groups[parity(v)] = append(groups[parity(v)], v)
		}
		got := map[int][]int{}
		for _, g := range result[[]quern.Pair[int, []int]](w.t)(w.r.GroupBy(parity, w.n).Collect()) {
			got[g.Key] = g.Value
		}
		equal(w.t, "groupBy", groups, got)
	})
}

func TestSortingIsStable(t *testing.T) {
	check(t, func(w *world) {
		for _, ascending := range []bool{true, false} {
			direction := 1
			if !ascending {
				direction = -1
			}
			want := slices.Clone(w.pairs)
			slices.SortStableFunc(want, func(a, b pair) int { return direction * cmp.Compare(a.Value, b.Value) })
			sorted := quern.AsRDD(w.p).SortBy(func(p pair) int { return p.Value }, ascending, w.n)
			equal(w.t, "sortBy", want, result[[]pair](w.t)(sorted.Collect()))
			equal(w.t, "partitions", w.n, sorted.NumPartitions())
			want = slices.Clone(w.pairs)
			slices.SortStableFunc(want, func(a, b pair) int { return direction * cmp.Compare(a.Key, b.Key) })
			equal(w.t, "sortByKey", want, result[[]pair](w.t)(w.p.SortByKey(ascending, w.n).Collect()))
		}
	})
}

func TestSortedFloats(t *testing.T) {
	zero := math.Copysign(0, -1)
	in := []float64{math.NaN(), 1, 0, zero, math.Inf(-1), -1, math.Inf(1), zero, 0}
	got := result[[]float64](t)(openContext(t).Parallelize(in, 2).SortBy(func(f float64) float64 { return f }, true, 3).Collect())
	want := []float64{math.Inf(-1), -1, 0, zero, zero, 0, 1, math.Inf(1), math.NaN()}
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
			t.Errorf("%v, not %v (bits count)", got, want)
			break
		}
	}
}

func TestAggregationsByKey(t *testing.T) {
	check(t, func(w *world) {
		add := func(a, b int) int { return a + b }
		groups := byKey(w.pairs)
		var sums []pair
		counts := map[string]int64{}
		for k, vs := range groups {
			counts[k] = int64(len(vs))
			s := 0
			for _, v := range vs {
				s += v
			}
			sums = append(sums, pair{Key: k, Value: s})
		}
		sums = sortedPairs(sums)
		all := func(what string, p quern.PairRDD[string, int]) {
			w.t.Helper()
			equal(w.t, what, sums, sortedPairs(result[[]pair](w.t)(p.Collect())))
		}
		all("reduceByKey", w.p.ReduceByKey(add, w.n))
		all("foldByKey", w.p.FoldByKey(0, add, w.n))
		all("aggregateByKey", w.p.AggregateByKey([]int(nil), func(s []int, v int) []int { return append(s, v) },
			func(a, b []int) []int { return append(a, b...) }, w.n).MapValues(func(s []int) int {
			total := 0
			for _, v := range s {
				total += v
			}
			return total
		}))
		all("combineByKey", w.p.CombineByKey(func(v int) [1]int { return [1]int{v} },
			func(c [1]int, v int) [1]int { return [1]int{c[0] + v} },
			func(a, b [1]int) [1]int { return [1]int{a[0] + b[0]} }).MapValues(func(c [1]int) int { return c[0] }))
		all("reduceByKey of what is partitioned already",
			w.p.PartitionBy(quern.HashPartitioner[string](w.n)).ReduceByKey(add))
		all("reduceByKey of groups", w.p.GroupByKey(w.n).MapValues(func(vs iter.Seq[int]) int {
			s := 0
			for v := range vs {
				s += v
			}
			return s
		}).ReduceByKey(add))
		equal(w.t, "countByKey", counts, result[map[string]int64](w.t)(w.p.CountByKey()))

		grouped := map[string][]int{}
		order := []string{}
		for _, g := range result[[]quern.Pair[string, []int]](w.t)(w.p.GroupByKey(1).Collect()) {
			grouped[g.Key] = g.Value
			order = append(order, g.Key)
		}
		equal(w.t, "groupByKey", groups, grouped)
		equal(w.t, "the order of groups", slices.Sorted(maps.Keys(groups)), order)
		firsts := result[[]int](w.t)(w.p.GroupByKey(1).MapGroups(func(k string, vs iter.Seq[int]) int {
			for v := range vs {
				return v // the rest of the group is skipped
			}
			return -1
		}).Collect())
		for i, k := range order {
			equal(w.t, "the first value of "+k, groups[k][0], firsts[i])
		}
		equal(w.t, "lookup", groups["a"], result[[]int](w.t)(w.p.Lookup("a")))
		last := map[string]int{}
		for k, vs := range groups {
			last[k] = vs[len(vs)-1]
		}
		equal(w.t, "collectAsMap", last, result[map[string]int](w.t)(w.p.CollectAsMap()))
		equal(w.t, "distinct", slices.Compact(sortedPairs(w.pairs)), sortedPairs(result[[]pair](w.t)(w.p.Distinct().Collect())))
	})
}

// joined is one line of a join, with "-" for nothing.
func joined(v, w quern.Option[int]) string { return v.String() + " " + w.String() }

func TestJoins(t *testing.T) {
	check(t, func(w *world) {
		others := w.drawPairs("others")
		q := quern.AsPairs(w.ctx.Parallelize(others, rapid.IntRange(1, 4).Draw(w.t, "partitions of others")))
		left, right := byKey(w.pairs), byKey(others)
		type line = quern.Pair[string, string]
		join := func(keepLeft, keepRight bool) []line {
			var lines []line
			keys := maps.Clone(left)
			maps.Copy(keys, right)
			for k := range keys {
				for _, v := range left[k] {
					for _, u := range right[k] {
						lines = append(lines, line{Key: k, Value: joined(quern.Some(v), quern.Some(u))})
					}
					if len(right[k]) == 0 && keepLeft {
						lines = append(lines, line{Key: k, Value: joined(quern.Some(v), quern.None[int]())})
					}
				}
				for _, u := range right[k] {
					if len(left[k]) == 0 && keepRight {
						lines = append(lines, line{Key: k, Value: joined(quern.None[int](), quern.Some(u))})
					}
				}
			}
			return sortedPairs(lines)
		}
		by := quern.HashPartitioner[string](w.n)
		ranges := quern.RangePartitioner("a", "b", "longer")
		custom := quern.FuncPartitioner(3, func(k string) int { return len(k) % 3 })
		for name, side := range map[string][2]quern.PairRDD[string, int]{
			"as they are":               {w.p, q},
			"left partitioned":          {w.p.PartitionBy(by), q},
			"right partitioned":         {w.p, q.PartitionBy(by)},
			"both partitioned":          {w.p.PartitionBy(by), q.PartitionBy(by)},
			"both, but not alike":       {w.p.PartitionBy(by), q.PartitionBy(quern.HashPartitioner[string](w.n + 1))},
			"by ranges":                 {w.p.PartitionBy(ranges), q},
			"by a function, both":       {w.p.PartitionBy(custom), q.PartitionBy(custom)},
			"by a function, one":        {w.p, q.PartitionBy(custom)},
			"sorted":                    {w.p.SortByKey(true, 3), q},
			"sorted downwards":          {w.p, q.SortByKey(false, 3)},
			"filtered and mapped after": {w.p.PartitionBy(by).MapValues(func(v int) int { return v }), q.Filter(func(string, int) bool { return true })},
		} {
			p, q := side[0], side[1]
			collect := func(r quern.PairRDD[string, string]) []line { return sortedPairs(result[[]line](w.t)(r.Collect())) }
			equal(w.t, "join "+name, join(false, false), collect(p.Join(q, func(v, u int) string {
				return joined(quern.Some(v), quern.Some(u))
			})))
			equal(w.t, "leftOuterJoin "+name, join(true, false), collect(p.LeftOuterJoin(q, func(v int, u quern.Option[int]) string {
				return joined(quern.Some(v), u)
			})))
			equal(w.t, "rightOuterJoin "+name, join(false, true), collect(p.RightOuterJoin(q, func(v quern.Option[int], u int) string {
				return joined(v, quern.Some(u))
			})))
			equal(w.t, "fullOuterJoin "+name, join(true, true), collect(p.FullOuterJoin(q, joined, w.n)))
			groups := map[string][2][]int{}
			for _, g := range result[[]quern.Pair[string, quern.CoGroupValues[int, int]]](w.t)(p.CoGroup(q).Collect()) {
				slices.Sort(g.Value.Left)
				slices.Sort(g.Value.Right)
				groups[g.Key] = [2][]int{g.Value.Left, g.Value.Right}
			}
			want := map[string][2][]int{}
			for k := range left {
				want[k] = [2][]int{slices.Sorted(slices.Values(left[k])), slices.Sorted(slices.Values(right[k]))}
			}
			for k := range right {
				want[k] = [2][]int{slices.Sorted(slices.Values(left[k])), slices.Sorted(slices.Values(right[k]))}
			}
			equal(w.t, "cogroup "+name, want, groups)
		}
	})
}

func TestPartitionersPutKeysWhereTheySay(t *testing.T) {
	ctx := openContext(t)
	pairs := ctx.Range(0, 20, 1).MapToPair(func(v int64) (int64, string) { return v % 10, fmt.Sprint(v) })
	where := func(p quern.PairRDD[int64, string]) [][]int64 {
		return result[[][]int64](t)(quern.AsRDD(p).MapPartitions(func(in iter.Seq[quern.Pair[int64, string]]) iter.Seq[[]int64] {
			keys := []int64{}
			for p := range in {
				keys = append(keys, p.Key)
			}
			return slices.Values([][]int64{keys})
		}).Collect())
	}
	equal(t, "by ranges: a bound begins a partition", [][]int64{{0, 0, 1, 1, 2, 2}, {3, 3, 4, 4, 5, 5, 6, 6}, {7, 7, 8, 8, 9, 9}},
		where(pairs.PartitionBy(quern.RangePartitioner[int64](3, 7))))
	equal(t, "by a function", [][]int64{{0, 0, 2, 2, 4, 4, 6, 6, 8, 8}, {1, 1, 3, 3, 5, 5, 7, 7, 9, 9}},
		where(pairs.PartitionBy(quern.FuncPartitioner(2, func(k int64) int { return int(k % 2) }))))
	hashed := where(pairs.PartitionBy(quern.HashPartitioner[int64](3)))
	seen := map[int64]int{}
	for i, keys := range hashed {
		for _, k := range keys {
			if before, ok := seen[k]; ok && before != i {
				t.Errorf("key %d is in partitions %d and %d", k, before, i)
			}
			seen[k] = i
		}
	}
	equal(t, "keys by hash", 10, len(seen))
	_, err := pairs.PartitionBy(quern.FuncPartitioner(2, func(k int64) int { return int(k) })).Count()
	contains(t, err, "failed: partitionBy at operations_test.go:", ": the partitioner's function returned 2, not a partition from 0 to 1")
	_, err = pairs.PartitionBy(quern.FuncPartitioner(2, func(k int64) int { panic("no key") })).Count()
	contains(t, err, "failed: partitionBy at operations_test.go:", ": panic: no key")
	_, err = pairs.ReduceByKey(func(a, b string) string { panic("no sum") }).Count()
	contains(t, err, "failed: reduceByKey at operations_test.go:", ": panic: no sum")
}

func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q: %v", part, err)
		}
	}
}

func TestRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := openContext(t)
		edge := rapid.OneOf(rapid.Int64Range(-20, 20), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		start := edge.Draw(t, "start")
		length := rapid.Int64Range(0, 20).Draw(t, "length")
		step := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})).Draw(t, "step")
		end := start + length
		if step < 0 {
			end = start - length
		}
		if step == 0 || (end < start) != (step < 0) && length > 0 { // 0, or past the largest number
			return
		}
		var want []int64
		for v := start; (v < end) == (step > 0) && v != end && int64(len(want)) < length; v += step {
			want = append(want, v)
			if next := v + step; (next > v) != (step > 0) {
				break
			}
		}
		equal(t, "range", want, result[[]int64](t)(ctx.Range(start, end, step, rapid.IntRange(1, 5).Draw(t, "n")).Collect()))
	})
	ctx := openContext(t)
	equal(t, "all numbers", []int64{math.MinInt64}, result[[]int64](t)(ctx.Range(math.MinInt64, math.MaxInt64, 1, 1).Take(1)))
	_, err := ctx.Range(0, 1, 0).Count()
	contains(t, err, "range at operations_test.go", "the step is 0")
}

func TestTextInAndOut(t *testing.T) {
	ctx := openContext(t)
	dir := t.TempDir()
	lines := []string{"one", "", "drei\x00", "ü" + strings.Repeat("long", 50_000)}
	if err := os.WriteFile(filepath.Join(dir, "in.txt"), []byte(strings.Join(lines, "\r\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	text := ctx.TextFile(filepath.Join(dir, "in.txt"))
	equal(t, "lines", lines, result[[]string](t)(text.Collect()))
	equal(t, "two paths", append(slices.Clone(lines), lines...),
		result[[]string](t)(ctx.TextFiles([]string{filepath.Join(dir, "in.txt"), filepath.Join(dir, "*.txt")}).Collect()))
	for _, c := range []quern.Compression{quern.Plain, quern.Gzip} {
		out := filepath.Join(dir, "out"+string(c))
		if err := text.Repartition(2).SaveAsTextFile(out, c); err != nil {
			t.Fatal(err)
		}
		got := result[[]string](t)(ctx.TextFile(out).Collect())
		equal(t, "saved "+string(c), slices.Sorted(slices.Values(lines)), slices.Sorted(slices.Values(got)))
		err := text.SaveAsTextFile(out, c)
		contains(t, err, "saveAsTextFile at operations_test.go", "exist")
	}
	saved := filepath.Join(dir, "pairs")
	if err := text.MapToPair(func(s string) (int, bool) { return len(s), s == "" }).Coalesce(1).SaveAsTextFile(saved); err != nil {
		t.Fatal(err)
	}
	equal(t, "saved pairs", []string{"(3,false)", "(0,true)", "(5,false)", "(200002,false)"},
		result[[]string](t)(ctx.TextFile(saved).Collect()))
	contains(t, text.SaveAsTextFile(filepath.Join(dir, "x"), "lz4"), `unknown compression "lz4"`)
	contains(t, text.SaveAsTextFile(""), "no path")
	_, err := ctx.TextFile(filepath.Join(dir, "missing")).Count()
	contains(t, err, "textFile at operations_test.go", "missing")
}

func TestForeach(t *testing.T) {
	// Natively tasks share the driver's memory, so that this can be seen.
	ctx := openContext(t)
	var seen []int64
	if err := ctx.Range(0, 5, 1).Foreach(func(v int64) { seen = append(seen, v) }); err != nil {
		t.Fatal(err)
	}
	partitions := 0
	if err := ctx.Range(0, 5, 1).ForeachPartition(func(iter.Seq[int64]) { partitions++ }); err != nil {
		t.Fatal(err)
	}
	pairs := 0
	p := ctx.Range(0, 5, 1).KeyBy(func(v int64) bool { return v > 2 })
	if err := p.Foreach(func(k bool, v int64) { pairs++ }); err != nil {
		t.Fatal(err)
	}
	if err := p.ForeachPartition(func(in iter.Seq2[bool, int64]) {
		for range in {
			pairs++
		}
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, "elements", []int64{0, 1, 2, 3, 4}, seen)
	equal(t, "partitions", 3, partitions)
	equal(t, "pairs", 10, pairs)
}

func TestCoGroupsAndTheirShortcuts(t *testing.T) {
	ctx := openContext(t)
	p := ctx.Range(0, 6, 1).KeyBy(func(v int64) int64 { return v % 3 })
	g := p.CoGroup(p.MapValues(func(v int64) string { return fmt.Sprint(v) }), 2)
	count := func(vs iter.Seq[int64], ws iter.Seq[string]) int {
		return len(slices.Collect(vs)) + 10*len(slices.Collect(ws))
	}
	equal(t, "keys", int64(3), result[int64](t)(g.Count()))
	equal(t, "partitions", 2, g.NumPartitions())
	equal(t, "mapValues", map[int64]int{0: 22, 1: 22, 2: 22}, result[map[int64]int](t)(g.MapValues(count).CollectAsMap()))
	equal(t, "mapGroups", 3, len(result[[]int](t)(g.MapGroups(func(_ int64, vs iter.Seq[int64], ws iter.Seq[string]) int {
		return count(vs, ws)
	}).Collect())))
	equal(t, "flatMapGroups", 6, len(result[[]int64](t)(g.FlatMapGroups(func(_ int64, vs iter.Seq[int64], _ iter.Seq[string]) []int64 {
		return slices.Collect(vs)
	}).Collect())))
	groups := p.GroupByKey()
	equal(t, "groups", int64(3), result[int64](t)(groups.Count()))
	equal(t, "keys", []int64{0, 1, 2}, slices.Sorted(slices.Values(result[[]int64](t)(groups.Keys().Collect()))))
	equal(t, "flatMapGroups", 6, len(result[[]int64](t)(groups.FlatMapGroups(func(_ int64, vs iter.Seq[int64]) []int64 {
		return slices.Collect(vs)
	}).Collect())))
	twice := groups.MapGroups(func(_ int64, vs iter.Seq[int64]) int { return len(slices.Collect(vs)) + len(slices.Collect(vs)) })
	_, err := twice.Collect()
	contains(t, err, "mapGroups at operations_test.go", "ranged over once", "slices.Collect")
}
