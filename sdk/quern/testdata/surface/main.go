// Command surface uses every exported function and method of the SDK and prints
// the results, which depend on nothing but the data.
package main

import (
	"cmp"
	"fmt"
	"iter"
	"log"
	"slices"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

type pair = quern.Pair[string, int64]

var line int

// show prints a result under a number.
func show[T any](v T, err error) {
	line++
	fmt.Printf("%d: %v %v\n", line, v, err)
}

func main() {
	ctx, err := quern.NewContext(quern.AppName("surface"), quern.Conf("quern.default.parallelism", "3"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ctx.Conf("quern.default.parallelism"))
	elements(ctx)
	pairs(ctx)
	joins(ctx)
}

func elements(ctx *quern.Context) {
	r := ctx.Range(0, 20, 1)
	words := ctx.Parallelize([]string{"b a", "c", "", "a d a"}, 2)
	show(r.NumPartitions(), r.Err())
	show(r.Map(func(v int64) string { return fmt.Sprint(v) }).Collect())
	show(words.FlatMap(strings.Fields).Collect())
	show(words.FlatMapSeq(strings.FieldsSeq).Collect())
	show(r.Filter(func(v int64) bool { return v%3 == 0 }).Collect())
	show(r.MapPartitions(func(in iter.Seq[int64]) iter.Seq[int] {
		return slices.Values([]int{len(slices.Collect(in))})
	}).Collect())
	show(r.MapPartitionsWithIndex(func(i int, in iter.Seq[int64]) iter.Seq[int] {
		return slices.Values([]int{i, len(slices.Collect(in))})
	}).Collect())
	show(r.Sample(0.5, 1).Collect())
	show(r.Union(r, r).Count())
	show(r.Coalesce(2).NumPartitions(), nil)
	show(r.Repartition(4).Collect())
	show(words.FlatMap(strings.Fields).Distinct().Collect())
	show(r.SortBy(func(v int64) int64 { return v * 7 % 20 }, true).Collect())
	show(r.SortBy(func(v int64) [2]string { return [2]string{fmt.Sprint(v % 2), fmt.Sprint(v)} }, false, 2).Collect())
	show(r.KeyBy(func(v int64) bool { return v > 10 }).CountByKey())
	show(r.GroupBy(func(v int64) int64 { return v % 4 }, 2).Collect())

	add := func(a, b int64) int64 { return a + b }
	show(r.Reduce(add))
	show(r.Fold(0, add))
	show(r.Aggregate("", func(s string, v int64) string { return s + fmt.Sprint(v) }, func(a, b string) string { return a + "|" + b }))
	show(r.Count())
	show(r.First())
	show(r.Take(9))
	show(r.Top(3, cmp.Compare))
	show(r.TakeOrdered(3, cmp.Compare))
	show(r.IsEmpty())
	show(0, r.Foreach(func(int64) {}))
	show(0, r.ForeachPartition(func(iter.Seq[int64]) {}))
	show(quern.CountByValue(words))
	show(quern.Sum(r))
	show(quern.Max(words))
	show(quern.Min(r))
	_, missing := ctx.TextFile("missing/file").Collect()
	show(missing != nil, nil)
	show(0, ctx.TextFiles(nil).SaveAsTextFile("nowhere", quern.Gzip))
	show(quern.Zstd+quern.Plain, nil)
	_, ok := quern.CurrentTask()
	show(ok, nil)
}

func pairs(ctx *quern.Context) {
	r := ctx.Range(0, 12, 1)
	p := r.MapToPair(func(v int64) (string, int64) { return fmt.Sprint(v % 5), v })
	add := func(a, b int64) int64 { return a + b }
	show(p.NumPartitions(), p.Err())
	show(p.Map(func(k string, v int64) string { return k + fmt.Sprint(v) }).Collect())
	show(p.FlatMap(func(k string, v int64) []string { return []string{k} }).Count())
	show(p.MapToPair(func(k string, v int64) (int64, string) { return v, k }).Collect())
	show(p.MapPartitions(func(in iter.Seq2[string, int64]) iter.Seq[string] {
		return func(yield func(string) bool) {
			for k := range in {
				yield(k)
				return
			}
		}
	}).Collect())
	show(p.Filter(func(k string, v int64) bool { return k != "1" }).Collect())
	show(p.MapValues(func(v int64) float64 { return float64(v) / 2 }).Collect())
	show(p.FlatMapValues(func(v int64) []int64 { return []int64{v, v} }).Values().Collect())
	show(p.Keys().Collect())
	show(p.Union(p).Distinct().Collect())
	show(p.Repartition(2).Count())
	show(p.Coalesce(1).Collect())
	show(p.ReduceByKey(add).Collect())
	show(p.FoldByKey(0, add, 2).Collect())
	show(p.AggregateByKey(map[int64]bool{}, func(m map[int64]bool, v int64) map[int64]bool { m[v] = true; return m },
		func(a, b map[int64]bool) map[int64]bool {
			for v := range b {
				a[v] = true
			}
			return a
		}).MapValues(func(m map[int64]bool) int { return len(m) }).Collect())
	show(p.CombineByKey(func(v int64) []int64 { return []int64{v} }, func(c []int64, v int64) []int64 { return append(c, v) },
		func(a, b []int64) []int64 { return append(a, b...) }).Collect())
	show(p.PartitionBy(quern.HashPartitioner[string](2)).ReduceByKey(add).Collect())
	show(p.PartitionBy(quern.RangePartitioner("1", "3")).Collect())
	byLength := quern.FuncPartitioner(2, func(k string) int { return len(k) % 2 })
	show(p.PartitionBy(byLength).NumPartitions(), nil)
	show(byLength.NumPartitions(), nil)
	show(p.SortByKey(false).Collect())
	show(p.SortByKey(true, 2).ReduceByKey(add).Collect())
	show(p.CollectAsMap())
	show(p.Lookup("3"))
	show(p.Count())
	show(p.CountByKey())
	show(p.First())
	show(p.Take(2))
	byValue := func(a, b pair) int { return cmp.Compare(a.Value, b.Value) }
	show(p.Top(2, byValue))
	show(p.TakeOrdered(2, byValue))
	show(p.IsEmpty())
	show(0, p.Foreach(func(string, int64) {}))
	show(0, p.ForeachPartition(func(iter.Seq2[string, int64]) {}))
	show(p.SaveAsTextFile("") != nil, nil)
	show(quern.AsPairs(quern.AsRDD(p)).Count())
}

func joins(ctx *quern.Context) {
	p := ctx.Range(0, 6, 1).KeyBy(func(v int64) int64 { return v % 4 })
	q := ctx.Range(0, 4, 1).MapToPair(func(v int64) (int64, string) { return v + 2, fmt.Sprint("q", v) })
	show(p.Join(q, func(v int64, w string) string { return fmt.Sprint(v, w) }).Collect())
	show(p.LeftOuterJoin(q, func(v int64, w quern.Option[string]) string { return fmt.Sprint(v, w) }, 2).Collect())
	show(p.RightOuterJoin(q, func(v quern.Option[int64], w string) string { return fmt.Sprint(v, w) }).Collect())
	show(p.FullOuterJoin(q, func(v quern.Option[int64], w quern.Option[string]) string {
		_, both := v.Get()
		return fmt.Sprint(v, w, both && w.IsDefined(), w.GetOrElse("?"), quern.Some(1), quern.None[int]())
	}).Collect())
	g := p.GroupByKey(2)
	show(g.NumPartitions(), g.Err())
	show(g.Count())
	show(g.Keys().Collect())
	show(g.MapValues(func(vs iter.Seq[int64]) int { return len(slices.Collect(vs)) }).Collect())
	show(g.MapGroups(func(k int64, vs iter.Seq[int64]) string { return fmt.Sprint(k, slices.Collect(vs)) }).Collect())
	show(g.FlatMapGroups(func(k int64, vs iter.Seq[int64]) []int64 { return slices.Collect(vs) }).Collect())
	c := p.CoGroup(q)
	show(c.NumPartitions(), c.Err())
	show(c.Count())
	show(c.Collect())
	show(c.MapValues(func(vs iter.Seq[int64], ws iter.Seq[string]) int { return len(slices.Collect(ws)) }).Collect())
	show(c.MapGroups(func(k int64, vs iter.Seq[int64], ws iter.Seq[string]) string {
		return fmt.Sprint(k, slices.Collect(ws), slices.Collect(vs))
	}).Collect())
	show(c.FlatMapGroups(func(k int64, vs iter.Seq[int64], ws iter.Seq[string]) []string { return slices.Collect(ws) }).Collect())
	laid := p.PartitionBy(quern.HashPartitioner[int64](2))
	show(laid.Join(laid.ReduceByKey(func(a, b int64) int64 { return a + b }), func(a, b int64) [2]int64 { return [2]int64{a, b} }).Collect())
}
