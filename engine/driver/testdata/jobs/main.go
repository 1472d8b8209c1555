// Command jobs is what the tests of the driver run: a job for each, named by the
// first argument. A job prints "ok" and more when all is well, and its error
// otherwise.
package main

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	ctx, err := quern.NewContext(quern.AppName("test"), quern.Conf("quern.default.parallelism", "4"))
	if err == nil {
		err = jobs[os.Args[1]](ctx)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

var jobs = map[string]func(*quern.Context) error{
	"count": func(ctx *quern.Context) error {
		n, err := ctx.Range(0, 1000, 1).Count()
		fmt.Println(n)
		return err
	},
	// spin runs tasks that never end.
	"spin": func(ctx *quern.Context) error {
		return ctx.Range(0, 4, 1).Foreach(func(i int64) {
			fmt.Println("spinning")
			for {
				i++
			}
		})
	},
	// shuffle reads one shuffle twice. Its map tasks say which they are.
	"shuffle": func(ctx *quern.Context) error {
		sums := ctx.Range(0, 1000, 1).MapPartitions(func(in iter.Seq[int64]) iter.Seq[int64] {
			return func(yield func(int64) bool) {
				in(yield)
				task, _ := quern.CurrentTask()
				fmt.Println("map", task.Partition)
			}
		}).MapToPair(func(i int64) (int64, int64) { return i % 7, i }).
			ReduceByKey(func(a, b int64) int64 { return a + b }, 2)
		for range 2 {
			got, err := sums.Collect()
			if err != nil {
				return err
			}
			slices.SortFunc(got, func(a, b quern.Pair[int64, int64]) int { return int(a.Key - b.Key) })
			fmt.Println(got)
		}
		return nil
	},
	// fail panics until a given attempt.
	"fail": func(ctx *quern.Context) error {
		good, err := strconv.Atoi(os.Args[2])
		if err != nil {
			return err
		}
		n, err := ctx.Range(0, 8, 1).Filter(func(i int64) bool { // fail
			if task, _ := quern.CurrentTask(); i == 5 && task.Attempt < good {
				panic(fmt.Sprintf("attempt %d", task.Attempt))
			}
			return true
		}).Count() // fail
		fmt.Println(n)
		return err
	},
	// save writes a folder, and its last partition never ends if there is another
	// argument.
	"save": func(ctx *quern.Context) error {
		endless := len(os.Args) > 3
		return ctx.Range(0, 4000, 1).Map(func(i int64) string {
			if endless && i == 3999 {
				fmt.Println("spinning")
				for {
				}
			}
			return strings.Repeat(strconv.FormatInt(i, 10), 100)
		}).SaveAsTextFile(os.Args[2])
	},
	"untravelled": func(ctx *quern.Context) error {
		r := ctx.Range(0, 4, 1)
		for _, err := range []error{
			second(r.Map(func(i int64) any { return i }).Collect()),
			second(r.Map(func(i int64) func() { return nil }).First()),
			second(r.MapToPair(func(i int64) (int64, chan int) { return i, nil }).GroupByKey().Count()),
			second(r.Map(func(i int64) struct{ A []error } { return struct{ A []error }{} }).Repartition(2).Count()),
		} {
			fmt.Println(err)
		}
		return nil
	},
	// results returns so many bytes from each of four tasks.
	"results": func(ctx *quern.Context) error {
		size, err := strconv.Atoi(os.Args[2])
		if err != nil {
			return err
		}
		all, err := ctx.Range(0, 4, 1).Map(func(int64) string { return strings.Repeat("x", size) }).Collect()
		fmt.Println(len(all))
		if err != nil {
			fmt.Println(err)
		}
		n, err := ctx.Range(0, 5, 1).Count() // the next job is not concerned
		fmt.Println(n)
		return err
	},
	// rounds runs jobs that each shuffle, as an iterative program does.
	"rounds": func(ctx *quern.Context) error {
		state := map[int64]int64{}
		for range 5 {
			got, err := ctx.Range(0, 100, 1).MapToPair(func(i int64) (int64, int64) { return i % 3, i + state[i%3] }).
				ReduceByKey(func(a, b int64) int64 { return max(a, b) }).CollectAsMap()
			if err != nil {
				return err
			}
			state = got
		}
		fmt.Println(state)
		return nil
	},
	"mix": mix,
	// dropping keeps one shuffle and drops one after the other.
	"dropping": func(ctx *quern.Context) error {
		sum := func(a, b int64) int64 { return a + b }
		pair := func(i int64) (int64, int64) { return i % 7, i }
		kept := ctx.Range(0, 1000, 1, 3).MapToPair(pair).ReduceByKey(sum, 1)
		for round := range 300 {
			dropped := ctx.Range(0, 10, 1, 1).MapToPair(pair).ReduceByKey(sum, 1)
			for _, r := range []quern.PairRDD[int64, int64]{kept, dropped} {
				if n, err := r.Count(); n != 7 || err != nil {
					return fmt.Errorf("round %d: %d keys, %w", round, n, err)
				}
			}
			fmt.Println("round", round)
		}
		return nil
	},
	// hoarding keeps all its shuffles, and changes 8 MiB between them.
	"hoarding": func(ctx *quern.Context) error {
		pair := func(i int64) (int64, int64) { return i, i }
		block := make([]byte, 8<<20)
		var kept []quern.PairRDD[int64, int64]
		for round := range 30 {
			for i := 0; i < len(block); i += 4096 { // no two pages are ever equal
				block[i], block[i+1], block[i+2] = byte(round), byte(i>>12), byte(i>>20)
			}
			r := ctx.Range(0, 10, 1, 1).MapToPair(pair).ReduceByKey(func(a, b int64) int64 { return a + b }, 1)
			if _, err := r.Count(); err != nil {
				return err
			}
			kept = append(kept, r)
		}
		fmt.Println(len(kept), "rounds", block[0])
		return nil
	},
}

func second[T any](_ T, err error) error { return err }

// mix does a little of everything, and prints what comes out of it.
func mix(ctx *quern.Context) error {
	in, out := os.Args[2], os.Args[3]
	lines := ctx.TextFile(in, 3)
	words := lines.FlatMap(strings.Fields)
	counts := words.MapToPair(func(w string) (string, int64) { return w, 1 }).
		ReduceByKey(func(a, b int64) int64 { return a + b })
	sorted, err := counts.SortByKey(true).Collect()
	if err != nil {
		return err
	}
	fmt.Println(sorted)
	lengths := words.Distinct().MapToPair(func(w string) (string, int) { return w, len(w) })
	joined, err := counts.Join(lengths, func(n int64, l int) int64 { return n * int64(l) }).CollectAsMap()
	if err != nil {
		return err
	}
	fmt.Println(len(joined), joined["the"])
	first, err := lines.Take(2)
	if err != nil {
		return err
	}
	fmt.Printf("%q\n", first)
	grouped, err := words.GroupBy(func(w string) int { return len(w) }).
		MapGroups(func(n int, in iter.Seq[string]) string { return fmt.Sprint(n, len(slices.Collect(in))) }).Collect()
	if err != nil {
		return err
	}
	fmt.Println(grouped)
	if err := counts.SortByKey(true).Coalesce(1).SaveAsTextFile(out, quern.Gzip); err != nil {
		return err
	}
	back, err := ctx.TextFile(out).Count()
	fmt.Println(back)
	return err
}
