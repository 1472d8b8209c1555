package quern_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/quern-project/quern/sdk/quern"
)

// here is "file.go:line" of the caller, plus some lines.
func here(lines int) string {
	_, _, line, _ := runtime.Caller(1)
	return "mistakes_test.go:" + strconv.Itoa(line+lines)
}

func TestMistakesNameTheOperationAndItsPlace(t *testing.T) {
	ctx := openContext(t)
	ran := false
	r := ctx.Range(0, 3, 1).Map(func(v int64) int64 { ran = true; return v })
	p := r.KeyBy(func(v int64) int64 { return v })
	var zeroRDD quern.RDD[int]
	var zeroPartitioner quern.Partitioner[int64]
	type unordered struct{ M map[string]int }
	count := func(r interface{ Count() (int64, error) }) error {
		_, err := r.Count()
		return err
	}
	collectAny := func() (string, error) {
		place := here(1)
		_, err := r.Map(func(v int64) []any { return nil }).Collect()
		return "collect at " + place + ": []interface {} cannot travel: []interface {}[] is an interface", err
	}
	reduceAny := func() (string, error) {
		place := here(1)
		bad := p.MapValues(func(int64) fmt.Stringer { return nil }).ReduceByKey(func(a, b fmt.Stringer) fmt.Stringer { return a })
		return "reduceByKey at " + place + ": fmt.Stringer cannot travel: it is an interface", count(bad.Filter(func(int64, fmt.Stringer) bool { return true }))
	}
	joinPointers := func() (string, error) {
		q := r.KeyBy(func(v int64) *int64 { return &v })
		place := here(1)
		joined := q.Join(q, func(a, b int64) int64 { return a })
		return "join at " + place + ": *int64 cannot be a key: it is a pointer", count(joined)
	}
	for _, c := range []struct {
		want string
		err  error
	}{
		pack(collectAny()),
		pack(reduceAny()),
		pack(joinPointers()),
		{"map at", count(r.Map[int](nil))},
		{"filter at", count(r.Filter(nil))},
		{"the function is nil", count(p.ReduceByKey(nil))},
		{"sortBy at", count(r.SortBy[int](nil, true))},
		{"reduce at", second(r.Reduce(nil))},
		{"foreach at", r.Foreach(nil)},
		{"the function is nil", second(r.Top(3, nil))},
		{"the function is nil", second(r.Aggregate(1, nil, nil))},
		{"zero RDD value", count(zeroRDD)},
		{"zero RDD value", count(zeroRDD.Map(func(int) int { return 1 }))},
		{"zero RDD value", count(quern.AsPairs(quern.RDD[quern.Pair[int, int]]{}).GroupByKey())},
		{"a zero Partitioner", count(p.PartitionBy(zeroPartitioner))},
		{"not ascending: 3 is followed by 2", count(p.PartitionBy(quern.RangePartitioner[int64](3, 2)))},
		{"the partitioner's function is nil", count(p.PartitionBy(quern.FuncPartitioner[int64](2, nil)))},
		{"number of partitions is 0", count(p.PartitionBy(quern.HashPartitioner[int64](0)))},
		{"number of partitions is -1", count(r.Repartition(-1))},
		{"number of partitions is 0", count(r.Coalesce(0))},
		{"more than one number of partitions", count(p.GroupByKey(1, 2))},
		{"number of partitions is 0", count(ctx.Range(0, 1, 1, 0))},
		{"the fraction is 2", count(r.Sample(2, 1))},
		{"take at", second(r.Take(-1))},
		{"M is a map, which has no order", count(r.Map(func(int64) unordered { return unordered{} }).Distinct())},
		{"distinct at", count(r.Map(func(int64) map[int]int { return nil }).Distinct())},
		{"countByValue at", second(quern.CountByValue(r.Map(func(int64) any { return 1 })))},
		{"no path", count(ctx.TextFiles(nil))},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("the error does not contain %q: %v", c.want, c.err)
		}
	}
	if ran {
		t.Error("a task ran before the mistake was noticed")
	}
	if err := r.Map[int](nil).Err(); err == nil {
		t.Error("Err does not tell of the mistake")
	}
	if n := r.Map[int](nil).NumPartitions(); n != 0 {
		t.Errorf("an RDD in error has %d partitions", n)
	}
}

func second[T any](_ T, err error) error { return err }

func pack(want string, err error) struct {
	want string
	err  error
} {
	return struct {
		want string
		err  error
	}{want, err}
}

func TestAValueThatCannotBeCopiedFailsTheAction(t *testing.T) {
	ctx := openContext(t)
	type ring struct{ Next *ring }
	loop := &ring{}
	loop.Next = loop
	one := ctx.Range(0, 1, 1, 1)
	_, err := one.Map(func(int64) *ring { return loop }).Collect()
	contains(t, err, "cycle")
	_, err = one.Aggregate(loop, func(r *ring, _ int64) *ring { return r }, func(a, b *ring) *ring { return a })
	contains(t, err, "cycle")
}

// swallows recovers from every panic, the SDK's own included.
func TestAFailureCannotBeSwallowed(t *testing.T) {
	ctx := openContext(t)
	p := ctx.Range(0, 10, 1, 1).KeyBy(func(v int64) int64 { return v }).
		PartitionBy(quern.FuncPartitioner(1, func(k int64) int { return int(k) }))
	_, err := p.Count()
	contains(t, err, "not a partition")
	var job *quern.JobError
	if !errors.As(err, &job) || job.Action != "count" || !strings.HasPrefix(job.CallSite, "mistakes_test.go:") {
		t.Errorf("not a JobError of count: %#v", err)
	}
}
