// Command forkrules is a job that looks at the fork rules from inside: it prints
// one line for each, which the test compares.
package main

import (
	"errors"
	"fmt"
	"log"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	ctx, err := quern.NewContext(quern.AppName("fork rules"), quern.Conf("quern.default.parallelism", "3"))
	if err != nil {
		log.Fatal(err)
	}
	random(ctx)
	captured(ctx)
	driverCalls(ctx)
	failures(ctx)
	types(ctx)
}

// captured: closures see variables as they are at the action, and keep changes
// for themselves.
func captured(ctx *quern.Context) {
	factor := int64(1)
	seen := map[int64]bool{}
	r := ctx.Range(0, 6, 1).Map(func(v int64) int64 {
		seen[v] = true
		return v*factor + int64(len(seen))*100
	})
	factor = 10
	fmt.Println(r.Collect())
	factor = 1000
	fmt.Println(r.Collect())
	fmt.Println("seen by the driver:", len(seen))
	info := ctx.Range(0, 3, 1).Map(func(int64) int {
		t, ok := quern.CurrentTask()
		if !ok {
			return -1
		}
		return t.Partition
	})
	fmt.Println(info.Collect())
	_, ok := quern.CurrentTask()
	fmt.Println("in the driver a task:", ok)
}

// random: tasks draw different numbers, retries and reruns of a task the same.
func random(ctx *quern.Context) {
	fail := len(os.Args) > 1 && os.Args[1] == "fail"
	draw := ctx.Range(0, 3, 1).Map(func(int64) string {
		var order []string
		m := map[int]int{}
		for i := range 20 {
			m[i] = i
		}
		for k := range m {
			order = append(order, fmt.Sprint(k))
		}
		if task, _ := quern.CurrentTask(); fail && task.Attempt == 0 {
			panic("the first attempt")
		}
		return fmt.Sprintf("%x %x %x %s", rand.Int63(), randv2.Uint64(), randv2.Uint64(), strings.Join(order, " "))
	})
	a, err := draw.Collect()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("different:", a[0] != a[1] && a[1] != a[2] && a[0] != a[2])
	if len(os.Args) > 1 { // for the comparison of runs
		fmt.Println(strings.Join(a, "\n"))
		os.Exit(0)
	}
}

func driverCalls(ctx *quern.Context) {
	other := ctx.Range(0, 3, 1)
	in := func(err error) string { return fmt.Sprint(errors.Is(err, quern.ErrInTask)) }
	fmt.Println(ctx.Range(0, 1, 1, 1).FlatMap(func(int64) []string {
		_, action := other.Count()
		_, onTransformation := other.Map(func(v int64) int64 { return v }).Count()
		ended := make(chan error)
		go func() {
			_, err := other.Count()
			ended <- err
		}()
		return []string{in(action), in(onTransformation), in(<-ended)}
	}).Collect())

	// A goroutine of the driver, woken in the clone, must not act there.
	wake, acted := make(chan bool), make(chan error, 1)
	go func() {
		<-wake
		_, err := other.Count()
		acted <- err
	}()
	runtime.Gosched()
	fmt.Println(ctx.Range(0, 1, 1, 1).Map(func(int64) string {
		wake <- true
		for range 1000 {
			runtime.Gosched()
		}
		select {
		case err := <-acted:
			return fmt.Sprint("acted: ", err)
		default:
			return "parked"
		}
	}).Collect())
	wake <- true
	fmt.Println("in the driver it acts:", <-acted)
}

// failures end tasks, never the driver.
func failures(ctx *quern.Context) {
	one := ctx.Range(0, 1, 1, 1)
	try := func(name string, f func(int64) int64) {
		_, err := one.Map(f).Count()
		var job *quern.JobError
		if !errors.As(err, &job) {
			fmt.Println(name, "no job error:", err)
			return
		}
		fmt.Println(name, "failed")
		fmt.Fprintf(os.Stderr, "--- %s\n%v\n", name, err)
	}
	try("panic", func(int64) int64 { panic("boom") })
	try("index", func(v int64) int64 { return []int64{}[v] })
	try("exit", func(int64) int64 { os.Exit(3); return 0 })
	try("fatal", func(int64) int64 { log.Fatal("the end"); return 0 })
	try("goexit", func(int64) int64 { runtime.Goexit(); return 0 })
	var mu sync.Mutex
	mu.Lock()
	try("lock", func(int64) int64 { mu.Lock(); return 0 })
	mu.Unlock()
	fmt.Println(one.Count())
}

// types that cannot move are an error before any task runs.
func types(ctx *quern.Context) {
	ran := ctx.Range(0, 2, 1)
	_, err := ran.Map(func(int64) any { panic("ran") }).Collect()
	fmt.Println(err)
	keys, err := ran.MapToPair(func(v int64) (string, int64) { return fmt.Sprint(v % 2), v }).GroupByKey().Collect()
	fmt.Println(keys, err)
	all, err := ran.Map(func(v int64) map[string][]int64 { return map[string][]int64{"v": {v}} }).Collect()
	fmt.Println(slices.IndexFunc(all, func(m map[string][]int64) bool { return m["v"][0] == 1 }), err)
}
