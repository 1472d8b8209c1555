//go:build !wasip1

package quern_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/quern"
)

// Whole jobs on the native evaluator, against computations that know nothing of
// partitions.

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newContext(t fataler, options ...quern.ContextOption) *quern.Context {
	t.Helper()
	ctx, err := quern.NewContext(options...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// must is the result of an action that has to succeed.
func must[T any](t fataler, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func same(t fataler, what string, want, got any) {
	t.Helper()
	if diff := gocmp.Diff(want, got, gocmp.Transformer("bits", math.Float64bits)); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// sorted is a copy in some order that does not depend on the one before.
func sorted[T any](s []T) []T {
	return slices.SortedFunc(slices.Values(s), func(a, b T) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

var partitions = rapid.IntRange(1, 6)

// pairs are few keys with values that tell them apart.
func pairs(t *rapid.T, name string) []quern.Pair[string, int] {
	keys := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,2}`), 0, 30).Draw(t, name)
	var all []quern.Pair[string, int]
	for i, k := range keys {
		all = append(all, quern.Pair[string, int]{Key: k, Value: i})
	}
	return all
}

func groups(all []quern.Pair[string, int]) map[string][]int {
	m := map[string][]int{}
	for _, p := range all {
		m[p.Key] = append(m[p.Key], p.Value)
	}
	return m
}

func parallelize(ctx *quern.Context, t *rapid.T, all []quern.Pair[string, int]) quern.PairRDD[string, int] {
	return quern.AsPairs(ctx.Parallelize(all, partitions.Draw(t, "partitions")))
}

func TestWordCountAgreesWithAMapOfWords(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.SliceOfN(rapid.StringMatching(`([abé ]{0,8}\r?\n){0,6}[ab ]{0,4}`), 1, 3).Draw(t, "files")
		want := map[string]int64{}
		var paths []string
		for i, text := range files {
			for _, w := range strings.Fields(text) {
				want[w]++
			}
			path := filepath.Join(dir, fmt.Sprint(i, ".txt"))
			content := []byte(text)
			if rapid.Bool().Draw(t, "gzip") {
				path += ".gz"
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				if _, err := z.Write(content); err != nil {
					t.Fatal(err)
				}
				if err := z.Close(); err != nil {
					t.Fatal(err)
				}
				content = b.Bytes()
			}
			if err := os.WriteFile(path, content, 0o666); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		got, err := newContext(t).TextFiles(paths, partitions.Draw(t, "text")).
			FlatMap(strings.Fields).
			MapToPair(func(w string) (string, int64) { return w, 1 }).
			ReduceByKey(func(a, b int64) int64 { return a + b }, partitions.Draw(t, "reduce")).
			CollectAsMap()
		same(t, "counts", want, must(t, got, err))
	})
}

func TestJoinsAgreeWithNestedLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := newContext(t)
		left, right := pairs(t, "left"), pairs(t, "right")
		var inner, lefts, rights, full []string
		byLeft, byRight := groups(left), groups(right)
		for _, l := range left {
			for _, r := range byRight[l.Key] {
				s := fmt.Sprint(l.Key, " ", l.Value, " ", r)
				inner, lefts, rights, full = append(inner, s), append(lefts, s), append(rights, s), append(full, s)
			}
			if len(byRight[l.Key]) == 0 {
				s := fmt.Sprint(l.Key, " ", l.Value, " None")
				lefts, full = append(lefts, s), append(full, s)
			}
		}
		for _, r := range right {
			if len(byLeft[r.Key]) == 0 {
				s := fmt.Sprint(r.Key, " None ", r.Value)
				rights, full = append(rights, s), append(full, s)
			}
		}
		a, b := parallelize(ctx, t, left), parallelize(ctx, t, right)
		if rapid.Bool().Draw(t, "left laid out") {
			a = a.PartitionBy(quern.HashPartitioner[string](partitions.Draw(t, "layout")))
		}
		show := func(o quern.Option[int]) string {
			if v, ok := o.Get(); ok {
				return fmt.Sprint(v)
			}
			return "None"
		}
		for name, c := range map[string]struct {
			rdd  quern.PairRDD[string, string]
			want []string
		}{
			"join":  {a.Join(b, func(v, w int) string { return fmt.Sprint(v, " ", w) }), inner},
			"left":  {a.LeftOuterJoin(b, func(v int, w quern.Option[int]) string { return fmt.Sprint(v, " ", show(w)) }), lefts},
			"right": {a.RightOuterJoin(b, func(v quern.Option[int], w int) string { return show(v) + " " + fmt.Sprint(w) }), rights},
			"full":  {a.FullOuterJoin(b, func(v, w quern.Option[int]) string { return show(v) + " " + show(w) }), full},
		} {
			got, err := c.rdd.Map(func(k, v string) string { return k + " " + v }).Collect()
			same(t, name, sorted(c.want), sorted(must(t, got, err)))
		}
	})
}

func TestGroupsKeepTheOrderOfTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := newContext(t)
		left, right := pairs(t, "left"), pairs(t, "right")
		grouped, err := parallelize(ctx, t, left).GroupByKey(partitions.Draw(t, "groups")).Collect()
		got := map[string][]int{}
		for _, g := range must(t, grouped, err) {
			got[g.Key] = g.Value
		}
		same(t, "groups", groups(left), got)

		both, err := parallelize(ctx, t, left).CoGroup(parallelize(ctx, t, right)).Collect()
		want := map[string]quern.CoGroupValues[int, int]{}
		for k := range groups(append(slices.Clone(left), right...)) {
			want[k] = quern.CoGroupValues[int, int]{Left: groups(left)[k], Right: groups(right)[k]}
		}
		gotBoth := map[string]quern.CoGroupValues[int, int]{}
		for _, g := range must(t, both, err) {
			if len(g.Value.Left) == 0 {
				g.Value.Left = nil
			}
			if len(g.Value.Right) == 0 {
				g.Value.Right = nil
			}
			gotBoth[g.Key] = g.Value
		}
		same(t, "both sides", want, gotBoth)
	})
}

func TestCountsAndSetsAgreeWithMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := newContext(t)
		all := pairs(t, "pairs")
		rdd := parallelize(ctx, t, all)
		counts := map[string]int64{}
		for k, v := range groups(all) {
			counts[k] = int64(len(v))
		}
		byKey, err := rdd.CountByKey()
		same(t, "CountByKey", counts, must(t, byKey, err))
		byValue, err := quern.CountByValue(rdd.Keys())
		same(t, "CountByValue", counts, must(t, byValue, err))
		distinct, err := rdd.Keys().Distinct(partitions.Draw(t, "distinct")).Collect()
		same(t, "Distinct", slices.Sorted(maps.Keys(counts)), slices.Sorted(slices.Values(must(t, distinct, err))))
		n, err := rdd.Count()
		same(t, "Count", int64(len(all)), must(t, n, err))
		sum, err := quern.Sum(rdd.Values())
		same(t, "Sum", len(all)*(len(all)-1)/2, must(t, sum, err))
	})
}

// order sorts as keys are ordered: numbers by value, -0 equal to 0, and NaN last.
func order(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	case math.IsNaN(b):
		return -1
	}
	return cmp.Compare(a, b)
}

func TestSortingIsStableWithZerosAndNaN(t *testing.T) {
	number := rapid.OneOf(
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), -math.NaN(), math.Inf(1), math.Inf(-1), 1, -1}),
		rapid.Float64(),
	)
	rapid.Check(t, func(t *rapid.T) {
		type numbered struct {
			Key float64
			At  int
		}
		var all []numbered
		for i, v := range rapid.SliceOfN(number, 0, 40).Draw(t, "numbers") {
			all = append(all, numbered{v, i})
		}
		rdd := newContext(t).Parallelize(all, partitions.Draw(t, "partitions"))
		key := func(n numbered) float64 { return n.Key }
		up, err := rdd.SortBy(key, true, partitions.Draw(t, "sorted")).Collect()
		want := slices.SortedStableFunc(slices.Values(all), func(a, b numbered) int { return order(a.Key, b.Key) })
		same(t, "ascending", append([]numbered{}, want...), must(t, up, err))
		down, err := rdd.SortBy(key, false, partitions.Draw(t, "sorted")).Collect()
		want = slices.SortedStableFunc(slices.Values(all), func(a, b numbered) int { return order(b.Key, a.Key) })
		same(t, "descending", append([]numbered{}, want...), must(t, down, err))
	})
}

func TestTopAndTakeAgreeWithASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type numbered struct{ Key, At int }
		var all []numbered
		for i, v := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 30).Draw(t, "numbers") {
			all = append(all, numbered{v, i})
		}
		all = append([]numbered{}, all...)
		rdd := newContext(t).Parallelize(all, partitions.Draw(t, "partitions"))
		n := rapid.IntRange(0, 35).Draw(t, "n")
		first := func(s []numbered) []numbered { return append([]numbered{}, s[:min(n, len(s))]...) }
		byKey := func(a, b numbered) int { return cmp.Compare(a.Key, b.Key) }

		took, err := rdd.Take(n)
		same(t, "Take", first(all), append([]numbered{}, must(t, took, err)...))
		ordered, err := rdd.TakeOrdered(n, byKey)
		same(t, "TakeOrdered", first(slices.SortedStableFunc(slices.Values(all), byKey)), append([]numbered{}, must(t, ordered, err)...))
		top, err := rdd.Top(n, byKey)
		same(t, "Top", first(slices.SortedStableFunc(slices.Values(all), func(a, b numbered) int { return byKey(b, a) })),
			append([]numbered{}, must(t, top, err)...))
	})
}

func TestMovingPartitionsAroundLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := newContext(t)
		a := rapid.SliceOfN(rapid.Int(), 0, 30).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Int(), 0, 30).Draw(t, "b")
		all := append(append([]int{}, a...), b...)
		union := ctx.Parallelize(a, partitions.Draw(t, "of a")).Union(ctx.Parallelize(b, partitions.Draw(t, "of b")))
		n := partitions.Draw(t, "n")

		joined, err := union.Coalesce(n).Collect()
		same(t, "union, coalesced", all, must(t, joined, err))
		if got, want := union.Coalesce(n).NumPartitions(), min(n, union.NumPartitions()); got != want {
			t.Fatalf("coalesced to %d partitions, want %d", got, want)
		}
		again := union.Repartition(n)
		moved, err := again.Collect()
		same(t, "repartitioned", slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(must(t, moved, err))))
		twice, err := again.Collect()
		same(t, "repartitioned, collected again", moved, must(t, twice, err))
	})
}

func TestAKeyEqualToTheLastBoundGoesToTheLastPartition(t *testing.T) {
	ctx := newContext(t)
	rdd := ctx.Range(0, 31, 1, 3).
		MapToPair(func(i int64) (int64, int64) { return i, i }).
		PartitionBy(quern.RangePartitioner[int64](10, 20, 30))
	got, err := rdd.MapPartitions(func(in iter.Seq2[int64, int64]) iter.Seq[[]int64] {
		var keys []int64
		for k := range in {
			keys = append(keys, k)
		}
		return slices.Values([][]int64{{keys[0], keys[len(keys)-1], int64(len(keys))}})
	}).Collect()
	same(t, "first, last and number of keys", [][]int64{{0, 9, 10}, {10, 19, 10}, {20, 29, 10}, {30, 30, 1}}, must(t, got, err))
}

func TestEmptyRDDsHaveDefinedAnswers(t *testing.T) {
	ctx := newContext(t)
	for name, rdd := range map[string]quern.RDD[int64]{
		"no element":          ctx.Parallelize([]int64{}),
		"an empty range":      ctx.Range(5, 5, 1),
		"all filtered":        ctx.Range(0, 100, 1).Filter(func(int64) bool { return false }),
		"shuffled nothing":    ctx.Parallelize([]int64{}).Distinct().Repartition(3),
		"nothing of anything": ctx.Parallelize([]int64{}).SortBy(func(v int64) int64 { return v }, true, 4),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rdd.Reduce(func(a, b int64) int64 { return a + b })
			wantEmpty(t, "Reduce", err)
			_, err = rdd.First()
			wantEmpty(t, "First", err)
			_, err = quern.Max(rdd)
			wantEmpty(t, "Max", err)
			_, err = quern.Min(rdd)
			wantEmpty(t, "Min", err)
			n, err := rdd.Count()
			same(t, "Count", int64(0), must(t, n, err))
			sum, err := quern.Sum(rdd)
			same(t, "Sum", int64(0), must(t, sum, err))
			fold, err := rdd.Fold(7, func(a, b int64) int64 { return max(a, b) })
			same(t, "Fold", int64(7), must(t, fold, err))
			empty, err := rdd.IsEmpty()
			same(t, "IsEmpty", true, must(t, empty, err))
			took, err := rdd.Take(3)
			same(t, "Take", 0, len(must(t, took, err)))
			top, err := rdd.Top(3, cmp.Compare)
			same(t, "Top", 0, len(must(t, top, err)))
			all, err := rdd.Collect()
			same(t, "Collect", 0, len(must(t, all, err)))
		})
	}
}

func wantEmpty(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, quern.ErrEmpty) {
		t.Errorf("%s: error %v, want one that says empty", what, err)
	}
}

func TestMorePartitionsThanElements(t *testing.T) {
	rdd := newContext(t).Range(0, 3, 1, 50)
	all, err := rdd.SortBy(func(v int64) int64 { return -v }, true, 20).Collect()
	same(t, "sorted", []int64{2, 1, 0}, must(t, all, err))
	last, err := rdd.Reduce(func(_, b int64) int64 { return b })
	same(t, "last", int64(2), must(t, last, err))
}

func TestTakeComputesFewPartitions(t *testing.T) {
	ctx := newContext(t)
	computed := 0 // natively tasks share the driver's memory
	rdd := ctx.Range(0, 1000, 1, 100).MapPartitions(func(in iter.Seq[int64]) iter.Seq[int64] {
		computed++
		return in
	})
	got, err := rdd.Take(11)
	same(t, "elements", 11, len(must(t, got, err)))
	if computed > 5 {
		t.Errorf("%d of 100 partitions were computed for 11 elements of 10 a partition", computed)
	}
}

func TestSavedTextReadsBack(t *testing.T) {
	lines := []string{"one", "", "two words", "ünïcode", "(tuple,like)"}
	for _, compression := range []quern.Compression{quern.Plain, quern.Gzip} {
		t.Run(string("compression "+compression), func(t *testing.T) {
			ctx := newContext(t)
			out := filepath.Join(t.TempDir(), "out")
			if err := ctx.Parallelize(lines, 3).SaveAsTextFile(out, compression); err != nil {
				t.Fatal(err)
			}
			got, err := ctx.TextFile(out).Collect()
			same(t, "lines", lines, must(t, got, err))
			if err := ctx.Parallelize(lines).SaveAsTextFile(out, compression); err == nil || !strings.Contains(err.Error(), "exists already") {
				t.Errorf("saving twice: error %v", err)
			}
		})
	}
	err := newContext(t).Parallelize(lines).SaveAsTextFile(filepath.Join(t.TempDir(), "out"), quern.Zstd)
	if err == nil || !strings.Contains(err.Error(), "use quern run") {
		t.Errorf("zstd: error %v", err)
	}
}

func TestAMissingFileIsTheErrorOfTheAction(t *testing.T) {
	_, err := newContext(t).TextFile("no/such/file").Map(strings.ToUpper).Count()
	if err == nil || !strings.Contains(err.Error(), filepath.FromSlash("no/such/file")) || !strings.Contains(err.Error(), "native_pipeline_test.go:") {
		t.Errorf("error %v", err)
	}
}

func TestAFailureNamesJobPartitionAndCause(t *testing.T) {
	ctx := newContext(t)
	rdd := ctx.Range(0, 10, 1, 5).Map(func(i int64) int64 {
		if i == 7 {
			panic("seven is not allowed")
		}
		return i
	})
	shuffled := rdd.Map(func(i int64) int64 { return i % 2 }).Distinct()
	for name, act := range map[string]func() error{
		"in the last stage":  func() error { _, err := rdd.Count(); return err },
		"before the shuffle": func() error { _, err := shuffled.Count(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := act()
			var job *quern.JobError
			if !errors.As(err, &job) {
				t.Fatalf("error %v is no JobError", err)
			}
			for _, part := range []string{"count at native_pipeline_test.go:", "partition 3 failed", "map at native_pipeline_test.go:",
				"seven is not allowed"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
		})
	}
	// What closures return and contain is theirs, when it runs in others' hands, too.
	_, err := ctx.Range(0, 3, 1).MapPartitions(func(in iter.Seq[int64]) iter.Seq[int64] {
		return func(yield func(int64) bool) {
			for i := range in {
				panic(i)
			}
		}
	}).Filter(func(int64) bool { return true }).Count()
	if err == nil || !regexp.MustCompile(`partition \d failed: mapPartitions at native_pipeline_test.go:\d+: panic: 0\b`).MatchString(err.Error()) {
		t.Errorf("an iterator that panics: %v", err)
	}
	counted, _ := rdd.Count()
	summed, _ := quern.Sum(rdd)
	same(t, "count and sum of what failed", []int64{0, 0}, []int64{counted, summed})
	n, err := ctx.Range(0, 10, 1).Count()
	same(t, "a job after the failed ones", int64(10), must(t, n, err))
}

func TestAClosureCannotUseTheDriver(t *testing.T) {
	ctx := newContext(t)
	other := ctx.Range(0, 3, 1)
	var conf bool
	for name, closure := range map[string]func(int64) error{
		"an action":         func(int64) error { _, err := other.Count(); return err },
		"a transformation":  func(int64) error { return other.Map(func(v int64) int64 { return -v }).Err() },
		"a new context":     func(int64) error { _, err := quern.NewContext(); return err },
		"through iter.Pull": func(int64) error { _, err := pulled(other.Count); return err },
		"through a goroutine": func(int64) error {
			done := make(chan error)
			go func() { _, err := other.Count(); done <- err }()
			return <-done
		},
		"configuration": func(int64) error {
			if _, conf = ctx.Conf("quern.default.parallelism"); conf {
				return errors.New("there is a configuration in a task")
			}
			return quern.ErrInTask
		},
	} {
		t.Run(name, func(t *testing.T) {
			var inside error
			if err := ctx.Range(0, 1, 1, 1).Foreach(func(i int64) { inside = closure(i) }); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(inside, quern.ErrInTask) {
				t.Errorf("error %v, want %v", inside, quern.ErrInTask)
			}
		})
	}
}

// pulled runs f on the goroutine of a coroutine.
func pulled(f func() (int64, error)) (n int64, err error) {
	next, stop := iter.Pull(func(yield func(int) bool) {
		n, err = f()
		yield(0)
	})
	defer stop()
	next()
	return n, err
}

func TestContextsAndGoroutinesShareTheProcess(t *testing.T) {
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			ctx, err := quern.NewContext(quern.Conf("quern.default.parallelism", fmt.Sprint(g+1)))
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				rdd := ctx.Range(0, 100, 1).MapToPair(func(i int64) (int64, int64) { return i % 7, i * int64(g) }).
					ReduceByKey(func(a, b int64) int64 { return a + b })
				sum, err := quern.Sum(rdd.Values())
				if err != nil || sum != int64(g)*4950 {
					t.Errorf("goroutine %d: sum %d and error %v", g, sum, err)
				}
				if _, err := rdd.Map(func(k, v int64) int64 { panic(g) }).Count(); err == nil || !strings.Contains(err.Error(), fmt.Sprint("panic: ", g)) {
					t.Errorf("goroutine %d: error %v", g, err)
				}
			}
		})
	}
	group.Wait()
}

func TestLongLineagesAndManyJobs(t *testing.T) {
	ctx := newContext(t)
	rdd := ctx.Range(0, 10, 1, 2).MapToPair(func(i int64) (int64, int64) { return i, 0 })
	const rounds = 100
	for range rounds {
		rdd = rdd.MapToPair(func(k, v int64) (int64, int64) { return (k + 1) % 10, v + 1 }).
			ReduceByKey(func(a, b int64) int64 { return a + b })
	}
	got, err := rdd.CollectAsMap()
	want := map[int64]int64{}
	for k := range int64(10) {
		want[k] = rounds
	}
	same(t, "after all rounds", want, must(t, got, err))
}
