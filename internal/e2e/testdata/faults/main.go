// Command faults is a job that goes wrong, in the way that its first argument
// names: a task in most cases, the driver in those of driver.go. The tests look at
// what the engine makes of it.
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"time"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	way := os.Args[1]
	if run, ok := withoutContext[way]; ok {
		run()
		return
	}
	ctx, err := quern.NewContext()
	if err == nil {
		switch {
		case task[way] != nil:
			var n int64
			n, err = ctx.Range(0, 4, 1, 2).Map(task[way]).Count() // of a task
			fmt.Println(n, "elements")
		case driver[way] != nil:
			err = driver[way](ctx)
		default:
			err = fmt.Errorf("there is no way to go wrong called %q", way)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What is computed must not be optimised away.
var (
	sink  []byte
	zero  int64
	table map[int64]int64
)

// task has what the closure of one task does with an element. There are four
// elements, two in each partition; mostly the one that is 2, with which
// partition 1 begins, is the bad one.
var task = map[string]func(i int64) int64{
	"none": func(i int64) int64 { return i },
	"spin": func(i int64) int64 {
		for {
			i++
		}
	},
	"memory": func(i int64) int64 {
		if i == 2 {
			var all [][]byte
			for {
				sink = make([]byte, 1<<20)
				for at := 0; at < len(sink); at += 4096 {
					sink[at] = 1
				}
				all = append(all, sink)
				zero = int64(len(all)) & 0
			}
		}
		return i
	},
	"memory-at-once": func(i int64) int64 {
		if i == 2 {
			sink = make([]byte, 1<<30)
		}
		return i
	},
	"recursion": func(i int64) int64 {
		if i == 2 {
			return endless(i)
		}
		return i
	},
	"panic": func(i int64) int64 {
		if i == 2 {
			panicking(i)
		}
		return i
	},
	"panic-error": func(i int64) int64 {
		if i == 2 {
			panic(fmt.Errorf("reading the record: %w", os.ErrNotExist))
		}
		return i
	},
	"nil-map": func(i int64) int64 {
		if i == 2 {
			table[i] = i
		}
		return i
	},
	"index": func(i int64) int64 {
		if i == 2 {
			return []int64{1, 2, 3}[i+5]
		}
		return i
	},
	"division": func(i int64) int64 {
		if i == 2 {
			return i / zero
		}
		return i
	},
	"nil-pointer": func(i int64) int64 {
		if i == 2 {
			var p *time.Time
			return p.Unix()
		}
		return i
	},
	"deadlock": func(i int64) int64 {
		if i == 2 {
			<-make(chan int)
		}
		return i
	},
	"exit": func(i int64) int64 {
		if i == 2 {
			fmt.Println("about to leave")
			os.Exit(3)
		}
		return i
	},
	"exit-0": func(i int64) int64 {
		if i == 2 {
			os.Exit(0)
		}
		return i
	},
	"fatal": func(i int64) int64 {
		if i == 2 {
			log.Fatalf("cannot go on with %d", i)
		}
		return i
	},
	"goexit": func(i int64) int64 {
		if i == 2 {
			runtime.Goexit()
		}
		return i
	},
	"goroutine-panic": func(i int64) int64 {
		if i == 2 {
			fmt.Println("before the end")
			go panicking(i)
			time.Sleep(time.Hour)
		}
		return i
	},
	"map-race": func(i int64) int64 {
		if i == 2 {
			m := map[int64]int64{}
			go func() {
				for j := int64(0); ; j++ {
					m[j] = i
				}
			}()
			for j := int64(0); ; j++ {
				m[j] = i
			}
		}
		return i
	},
	"sleep": func(i int64) int64 { time.Sleep(time.Hour); return i },
}

func endless(i int64) int64 { return endless(i+1) + i }

//go:noinline
func panicking(i int64) { panic(fmt.Sprintf("element %d is bad\nand has two lines", i)) } // panics here
