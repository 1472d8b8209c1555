// A job for the tests of the rewriter, in the shape that the Go SDK gives one:
// it imports the safepoint and exports the task entry.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

//go:wasmimport quern yield
func yield()

// task is called by nobody in this test.
//
//go:wasmexport quern_task_1
func task(kind, id, partition int32) int64 {
	yield()
	return int64(kind + id + partition)
}

func main() {
	counts := map[string]int{}
	for i := range 20_000 {
		for _, w := range strings.Fields(fmt.Sprintf("a%d b%d the quick %v", i%7, i%11, float64(i)/3)) {
			counts[w]++
		}
	}
	var words []string
	for w, n := range counts {
		if n > 1000 {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	done := make(chan int)
	go func() {
		defer close(done)
		for i := range 10 {
			done <- i * i
		}
	}()
	for n := range done {
		fmt.Println(n)
	}
	for _, w := range words {
		fmt.Println(w, counts[w])
	}
	defer func() { fmt.Println("recovered:", recover(), len(os.Args)) }()
	_ = words[len(words)]
}
