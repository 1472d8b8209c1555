package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quern-project/quern/sdk/quern"
)

// withoutContext are ways to run that open no context.
var withoutContext = map[string]func(){
	"no-context":   func() { fmt.Println("no context") },
	"driver-exit":  func() { fmt.Println("leaving"); os.Exit(3) },
	"driver-panic": func() { panicking(7) }, // a driver that panics
	"driver-spin": func() {
		fmt.Println("ready")
		for {
		}
	},
	"driver-input": func() {
		fmt.Println("ready")
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println(line, err)
	},
	"driver-memory": func() {
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			zero = int64(len(all)) & 0
		}
	},
	"driver-recursion": func() { fmt.Println(endless(1)) },
	"driver-deadlock":  func() { <-make(chan int) }, // a driver that waits for nobody
}

// driver are ways to go wrong that a context is needed for.
var driver = map[string]func(*quern.Context) error{
	"two-contexts": func(*quern.Context) error {
		_, err := quern.NewContext()
		return err
	},
	"exit-after-a-job": func(ctx *quern.Context) error {
		fmt.Println(ctx.Range(0, 10, 1).Count())
		os.Exit(3)
		return nil
	},
	// goes-on: tasks fail in the ways given, and other jobs go on.
	"goes-on": func(ctx *quern.Context) error {
		for _, way := range strings.Split(os.Args[2], ",") {
			_, err := ctx.Range(0, 4, 1, 2).Map(task[way]).Count() // of a task
			var job *quern.JobError
			if !errors.As(err, &job) {
				return fmt.Errorf("%s: %w", way, err)
			}
			first, _, _ := strings.Cut(job.Text, "\n")
			_, reason, _ := strings.Cut(first, "partition 1 failed: ")
			fmt.Printf("%s: %s\n", way, reason)
			fmt.Println(ctx.Range(0, 1000, 1).Count())
		}
		return nil
	},
	"loops": func(ctx *quern.Context) error {
		fmt.Println("ready")
		return ctx.Range(0, 4, 1).Foreach(func(i int64) { task[os.Args[2]](i) })
	},
	"count": func(ctx *quern.Context) error {
		n, err := ctx.TextFile(os.Args[2]).Count() // reading
		fmt.Println(n, "lines")
		return err
	},
	"save":      func(ctx *quern.Context) error { return save(ctx, quern.Plain) },
	"save-gzip": func(ctx *quern.Context) error { return save(ctx, quern.Gzip) },
	"shuffle": func(ctx *quern.Context) error {
		size, err := strconv.ParseInt(os.Args[2], 10, 64)
		if err != nil {
			return err
		}
		n, err := noise(ctx, size).Repartition(3).Count() // shuffling
		fmt.Println(n, "elements")
		return err
	},
	// reread sorts twice, from the shuffle files of the first time, after a line on
	// standard input.
	"reread": func(ctx *quern.Context) error {
		sorted := noise(ctx, 1<<20).SortBy(func(s string) string { return s }, true, 3)
		for range 2 {
			all, err := sorted.Collect()
			if err != nil {
				return err
			}
			fmt.Printf("%d %v %x\n", len(all), slices.IsSorted(all), sha256.Sum256([]byte(strings.Join(all, "\n"))))
			if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
				return err
			}
		}
		return nil
	},
	// ticker prints by how much the latest of many ticks is late, while the tasks
	// in all partitions but its own spin.
	"ticker": func(ctx *quern.Context) error {
		others, err := strconv.Atoi(os.Args[2])
		if err != nil {
			return err
		}
		return ctx.Range(0, int64(others)+1, 1, others+1).Foreach(func(i int64) {
			if i < int64(others) {
				task["spin"](i)
			}
			fmt.Println("late by", latestOf(60, 5*time.Millisecond))
			panic("so that the others end")
		})
	},
	// record moves one element of so many bytes through a shuffle and to the
	// driver.
	"record": func(ctx *quern.Context) error {
		size, err := strconv.Atoi(os.Args[2])
		if err != nil {
			return err
		}
		all, err := ctx.Range(0, 3, 1).Map(func(i int64) string { // records
			if i == 1 {
				return strings.Repeat("x", size)
			}
			return "small"
		}).Repartition(2).Collect()
		total := 0
		for _, s := range all {
			total += len(s)
		}
		fmt.Println(len(all), "elements,", total, "bytes")
		return err
	},
	"edges": edges,
}

// save writes an output of so many bytes, of which the task of partition 1 goes
// wrong at its end in the way given.
func save(ctx *quern.Context, compression quern.Compression) error {
	size, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		return err
	}
	way := task[os.Args[4]]
	lines := noise(ctx, size).MapPartitionsWithIndex(func(p int, lines iter.Seq[string]) iter.Seq[string] { // a task that saves
		return func(yield func(string) bool) {
			lines(yield)
			way(int64(2 * p))
		}
	})
	return lines.SaveAsTextFile(os.Args[2], compression) // saving
}

// latestOf is by how much a tick came late at most.
func latestOf(ticks int, period time.Duration) (latest time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last := time.Now()
	for range ticks {
		<-ticker.C
		now := time.Now()
		latest = max(latest, now.Sub(last)-period)
		last = now
	}
	return latest
}

// noise is so many bytes, in lines, that packing makes little smaller.
func noise(ctx *quern.Context, size int64) quern.RDD[string] {
	const line = 1 << 10
	return ctx.Range(0, size/line, 1, 4).Map(func(int64) string { // noise
		b := make([]byte, 0, line)
		for len(b) < line {
			b = binary.LittleEndian.AppendUint64(b, rand.Uint64()&0x3f3f3f3f3f3f3f3f+0x3030303030303030)
		}
		return string(b[:line-1])
	})
}

// edges prints what actions make of RDDs with no elements, and of those with more
// partitions than elements.
func edges(ctx *quern.Context) error {
	add := func(a, b int64) int64 { return a + b }
	for _, r := range []quern.RDD[int64]{
		ctx.Parallelize([]int64{}),
		ctx.Range(5, 5, 1),
		ctx.Range(0, 5, 1, 3).Filter(func(int64) bool { return false }),
		ctx.Range(0, 2, 1, 7),
		ctx.Range(0, 2, 1, 7).Repartition(5).SortBy(func(i int64) int64 { return i }, true, 9),
	} {
		show(r.Collect())("collect")
		show(r.Count())("count")
		show(r.First())("first") // edges
		show(r.Take(3))("take")
		show(r.Reduce(add))("reduce") // edges
		show(r.Fold(0, add))("fold")
		show(quern.Max(r))("max") // edges
		show(quern.Min(r))("min") // edges
		show(quern.Sum(r))("sum")
		show(r.Top(2, cmp.Compare[int64]))("top")
		show(r.TakeOrdered(2, cmp.Compare[int64]))("takeOrdered")
		show(r.IsEmpty())("isEmpty")
		show(quern.CountByValue(r))("countByValue")
		pairs := r.MapToPair(func(i int64) (int64, int64) { return i, i })
		show(pairs.CountByKey())("countByKey")
		show(pairs.CollectAsMap())("collectAsMap")
		show(pairs.ReduceByKey(add).SortByKey(true).Collect())("reduceByKey")
		show(pairs.GroupByKey().MapGroups(func(k int64, _ iter.Seq[int64]) int64 { return k }).Count())("groupByKey")
		show(pairs.Join(pairs, add).Count())("join")
		show(r.Union(r).Count())("union")
		show(r.Distinct().SortBy(func(i int64) int64 { return i }, true).Collect())("distinct")
		show(r.SortBy(func(i int64) int64 { return -i }, false).Collect())("sortBy")
		fmt.Println("foreach", r.Foreach(func(int64) {}))
	}
	return nil
}

// show prints what an action returned.
func show[T any](v T, err error) func(action string) {
	return func(action string) { fmt.Println(action, v, err) }
}
