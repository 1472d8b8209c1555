//go:build wasip1

// Command goguest is the Go guest of the sandbox's tests. Its first argument
// names a scenario. A scenario registers closures as tasks and calls the host,
// which captures the guest and runs the tasks in clones.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	crand "crypto/rand"
)

//go:wasmimport quern yield
func yield()

// act lets the host do what the test wants, with this number.
//
//go:wasmimport quern act
func act(n int32) int64

//go:wasmimport quern block
func block()

//go:wasmimport quern boom
func boom(kind int32)

//go:wasmimport quern emit
func emit(ptr unsafe.Pointer, n int32)

func say(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	emit(unsafe.Pointer(unsafe.StringData(s)), int32(len(s)))
}

var tasks []func(partition int32) int64

func task(f func(partition int32) int64) int32 {
	tasks = append(tasks, f)
	return int32(len(tasks) - 1)
}

//go:wasmexport quern_task_1
func quernTask(kind, id, partition int32) int64 { return tasks[id](partition) }

var sink any

func recurse(n int) int { return recurse(n+1) + 1 }

func main() {
	yieldIsImported()
	scenario := "empty"
	if len(os.Args) > 1 {
		scenario = os.Args[1]
	}
	f := scenarios[scenario]
	if f == nil {
		fmt.Fprintln(os.Stderr, "unknown scenario", scenario)
		os.Exit(64)
	}
	f()
}

//go:noinline
func yieldIsImported() {
	if len(os.Args) > 1000 {
		yield()
	}
}

var scenarios = map[string]func(){
	"empty": func() {
		act(task(func(p int32) int64 { return int64(p) }))
	},

	// captured: variables, maps and slices as they stood; a second action sees
	// what changed since the first and nothing of what tasks did.
	"captured": func() {
		x, m, s := 41, map[string]int{"a": 1}, []int{1, 2, 3}
		t := task(func(p int32) int64 {
			m[fmt.Sprint("task", p)] = 7
			s = append(s, int(p))
			x += int(p)
			keys := make([]string, 0, len(m))
			for k, v := range m {
				keys = append(keys, fmt.Sprint(k, "=", v))
			}
			slices.Sort(keys)
			say("%d %v %v", x, keys, s)
			return int64(x)
		})
		x++
		act(t)
		say("driver %d %v %v", x, m, s)
		x, m["b"] = 100, 2
		s[0] = 9
		act(t)
		say("driver %d %v %v", x, m, s)
	},

	"args": func() {
		say("%q %q", os.Args[1:], os.Environ())
		buf := make([]byte, 100)
		n, err := os.Stdin.Read(buf)
		say("%q %v", buf[:n], err)
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		_, err = os.Open("/etc/passwd")
		say("%v", err)
	},

	"exit3": func() { os.Exit(3) },

	"panic": func() { panic("the driver is unhappy") },

	"blocked":  func() { block() },
	"hostboom": func() { boom(0) },

	"spin": func() {
		for {
		}
	},

	"stdin": func() {
		buf := make([]byte, 1)
		os.Stdin.Read(buf)
	},

	// output: each task writes to its own streams, closes them, and the next one
	// still has its own.
	"output": func() {
		act(task(func(p int32) int64 {
			fmt.Println("out", p)
			fmt.Fprintln(os.Stderr, "err", p)
			os.Stdout.Close()
			os.Stderr.Close()
			return 0
		}))
	},

	"busy": func() {
		start := time.Now()
		ch := make(chan int)
		go func() {
			for i := 0; ; i++ {
				ch <- i
			}
		}()
		<-ch
		timer := time.NewTimer(time.Hour)
		tick := time.NewTicker(20 * time.Millisecond)
		var mu sync.Mutex
		heap := map[int][]byte{}
		for i := range 1000 {
			heap[i] = make([]byte, 1000+i)
		}
		t := task(func(p int32) int64 {
			// A goroutine of the driver goes on in the clone.
			a, b := <-ch, <-ch
			if b != a+1 {
				return -1
			}
			// Goroutines and locks of the clone's own.
			var wg sync.WaitGroup
			sum := 0
			for i := range 50 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					runtime.Gosched()
					mu.Lock()
					sum += i
					mu.Unlock()
				}()
			}
			wg.Wait()
			if sum != 49*50/2 {
				return -2
			}
			// Sleeping, and a timer set before the capture.
			before := time.Now()
			time.Sleep(5 * time.Millisecond)
			if time.Since(before) < 5*time.Millisecond || time.Since(before) > time.Minute {
				return -3
			}
			if since := time.Since(start); since < 0 || since > time.Hour {
				return -4
			}
			<-tick.C
			if timer.Reset(time.Millisecond); (<-timer.C).Before(before) {
				return -5
			}
			// Collecting garbage.
			for i := range 2000 {
				heap[i%1000] = make([]byte, 5000)
				sink = heap[i%1000]
			}
			runtime.GC()
			total := 0
			for _, b := range heap {
				total += len(b)
			}
			if total != 1000*5000 {
				return -6
			}
			return 1
		})
		act(t)
	},

	// failing: what a task can die of.
	"failing": func() {
		m := map[int]int{}
		act(task(func(p int32) int64 {
			switch p {
			case 0:
				return 0
			case 1:
				os.Exit(7)
			case 2:
				panic("the task is unhappy")
			case 3:
				for {
					m[0]++
				}
			case 4:
				time.Sleep(time.Hour)
			case 5:
				return int64(recurse(0))
			case 6:
				var all [][]byte
				for {
					all = append(all, make([]byte, 1<<20))
					sink = all
				}
			case 7:
				block()
			case 8:
				boom(0)
			case 9:
				boom(1)
			case 10:
				boom(2)
			case 11:
				os.Exit(0)
			case 12:
				select {} // a deadlock
			case 13:
				for {
				}
			case 14:
				boom(3)
			}
			return 0
		}))
	},

	// big: a driver with a large heap that is not all equal.
	"big": func() {
		rng := rand.New(rand.NewPCG(1, 2))
		heap := make([][]byte, 100)
		for i := range heap {
			heap[i] = make([]byte, 1<<20)
			for j := 0; j < len(heap[i]); j += 8 {
				heap[i][j] = byte(rng.Uint32())
			}
		}
		runtime.GC()
		t := task(func(p int32) int64 {
			if p == 100 { // reads everything
				sum := int64(0)
				for _, b := range heap {
					for i := 0; i < len(b); i += 64 {
						sum += int64(b[i])
					}
				}
				return sum
			}
			return int64(heap[int(p)%100][0])
		})
		act(t)
		heap[3][5]++
		act(t)
		heap[4][5]++
		act(t)
	},

	// two: two images, for slots that alternate.
	"two": func() {
		x := 1
		t := task(func(p int32) int64 {
			y := x
			x += int(p)
			if p%16 == 0 { // grows now and then
				sink = make([]byte, 3<<20)
			}
			return int64(y)
		})
		act(t)
		x = 2
		sink = make([]byte, 5<<20)
		for i := range sink.([]byte) {
			sink.([]byte)[i] = 1
		}
		act(t)
	},

	"random": func() {
		draw := func() {
			var b [16]byte
			crand.Read(b[:])
			say("%x", b)
		}
		draw()
		act(task(func(p int32) int64 { draw(); return 0 }))
	},

	"grow": func() {
		act(task(func(p int32) int64 {
			b := make([]byte, int(p)<<20)
			for i := range b {
				b[i] = 1
			}
			sink = b
			return int64(len(b))
		}))
	},
}
