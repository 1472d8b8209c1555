// Command forks is a job that looks at what tasks see of the driver's memory and
// the driver of theirs: the fork rules of package quern. Each argument names a
// look; the tests compare what it prints.
package main

import (
	"fmt"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	ctx, err := quern.NewContext()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, name := range os.Args[1:] {
		looks[name](ctx)
	}
}

var looks = map[string]func(*quern.Context){
	// Two partitions of two elements count in a variable of the driver's.
	"counter": func(ctx *quern.Context) {
		counter := 0
		counts := ctx.Range(0, 4, 1, 2).Map(func(int64) int { counter++; return counter })
		fmt.Println(counts.Collect())
		fmt.Println(counter)
		counter = 10
		fmt.Println(counts.Collect())
		fmt.Println(counter)
	},
	// What a closure reaches over pointers, maps and slices is copied as well.
	"reached": func(ctx *quern.Context) {
		type node struct {
			value int64
			next  *node
		}
		list := &node{1, &node{2, nil}}
		seen := map[string]int64{"driver": 1}
		slice := []int64{1, 2, 3}
		values := ctx.Range(0, 2, 1, 2).Map(func(i int64) string {
			list.next.value += i
			seen["task"] += i
			slice[0] += i
			return fmt.Sprint(list.next.value, seen, slice)
		})
		list.next.value = 20
		fmt.Println(values.Collect())
		fmt.Println(list.next.value, seen, slice)
	},
	// In a task, the driver's calls are errors that say so.
	"inside": func(ctx *quern.Context) {
		other := ctx.Range(0, 3, 1)
		texts, err := ctx.Range(0, 1, 1, 1).FlatMap(func(int64) []string {
			_, onAction := other.Count()                                          // on action
			onTransformation := other.Map(func(i int64) int64 { return i }).Err() // on transformation
			onSource := ctx.Range(0, 1, 1).Err()                                  // on source
			_, onContext := quern.NewContext()                                    // on context
			return []string{onAction.Error(), onTransformation.Error(), onSource.Error(), onContext.Error()}
		}).Collect()
		for _, text := range texts {
			fmt.Println(text)
		}
		fmt.Println(err)
	},
	// A goroutine of the driver runs jobs all the time. Its copy in a task, when it
	// gets to run, does not.
	"background": func(ctx *quern.Context) {
		jobs, stop, stopped := 0, false, make(chan bool)
		go func() {
			defer close(stopped)
			for !stop {
				if n, err := ctx.Range(0, 3, 1, 1).Count(); n != 3 || err != nil {
					fmt.Println("in the background:", n, err)
				}
				jobs++
				runtime.Gosched()
			}
		}()
		for range 20 {
			runtime.Gosched()
		}
		fmt.Println(ctx.Range(0, 2, 1, 2).Map(func(int64) bool {
			before := jobs
			for range 100 {
				runtime.Gosched()
			}
			return before > 0 && jobs == before
		}).Collect())
		stop = true
		<-stopped
	},
	// A lock that the driver holds is held in the task for ever.
	"lock": func(ctx *quern.Context) {
		var mu sync.Mutex
		mu.Lock()
		n, err := ctx.Range(0, 1, 1, 1).Map(func(i int64) int64 { // is locked
			mu.Lock() // locks
			return i
		}).Count() // counts locked
		mu.Unlock()
		fmt.Println(n, err)
		fmt.Println(ctx.Range(0, 1, 1, 1).Map(func(i int64) int64 { mu.Lock(); return i }).Count())
	},
	// The monotonic clock goes on, and timers of the driver fire in the task, too.
	"clock": func(ctx *quern.Context) {
		start := time.Now()
		timer := time.After(20 * time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		spent := time.Since(start)
		fmt.Println(ctx.Range(0, 2, 1, 2).Map(func(int64) bool {
			now := time.Since(start)
			fired := <-timer // set in the driver
			return now >= spent && now < time.Minute && fired.After(start) && time.Since(start) >= 20*time.Millisecond
		}).Collect())
	},
	// A task's output goes to the log, the driver's is the job's.
	"prints": func(ctx *quern.Context) {
		err := ctx.Range(0, 2, 1, 2).Foreach(func(i int64) {
			fmt.Println("a task's standard output", i)
			fmt.Fprintln(os.Stderr, "a task's standard error", i)
		})
		fmt.Println("the driver's standard output", err)
		fmt.Fprintln(os.Stderr, "the driver's standard error")
	},
	// Eight tasks, in two jobs, draw from all of Go's generators.
	"random": func(ctx *quern.Context) {
		draws := ctx.Range(0, 4, 1, 4).Map(func(int64) string {
			order := ""
			for k := range map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true} {
				order += fmt.Sprint(k)
			}
			return fmt.Sprint(rand.Int63(), randv2.Uint64(), rand.Perm(5), order)
		})
		first, err := draws.Collect()
		if err != nil {
			fmt.Println(err)
			return
		}
		again, err := draws.Collect() // another job
		distinct := map[string]bool{}
		for _, s := range append(first, again...) {
			fmt.Println(s)
			distinct[s] = true
		}
		fmt.Println(len(distinct), err)
	},
}
