// Kernels for measuring what safepoints cost compiled Go. Each returns a
// checksum, so that nothing is optimised away.
package main

import (
	"slices"
	"strings"
)

//go:wasmimport quern yield
func yield()

// Imported by every job, called by none: the host inserts the calls.
//
//go:wasmexport keep_yield
func keepYield() { yield() }

func main() {}

func next(s *uint32) uint32 { *s = *s*1664525 + 1013904223; return *s }

// scan is the worst case: a loop of a few instructions.
//
//go:wasmexport scan
func scan(n int32) int64 {
	text := make([]byte, 1<<16)
	seed := uint32(1)
	for i := range text {
		text[i] = byte(next(&seed) >> 24)
	}
	var words int64
	for range n {
		in := false
		for _, c := range text {
			space := c <= ' '
			if space && in {
				words++
			}
			in = !space
		}
	}
	return words
}

//go:wasmexport sort
func sort(n int32) int64 {
	a := make([]uint32, n)
	seed := uint32(2)
	for i := range a {
		a[i] = next(&seed)
	}
	slices.SortFunc(a, func(x, y uint32) int { return int(int64(x) - int64(y)) })
	var sum int64
	for _, v := range a {
		sum = sum*31 + int64(v)
	}
	return sum
}

//go:wasmexport fib
func fib(n int32) int64 { return fibonacci(int64(n)) }

func fibonacci(n int64) int64 {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

//go:wasmexport matmul
func matmul(n int32) int64 {
	size := int(n)
	a, b, c := make([]float64, size*size), make([]float64, size*size), make([]float64, size*size)
	for i := range a {
		a[i], b[i] = float64(i), float64(size*size-i)
	}
	for i := range size {
		for j := range size {
			s := 0.0
			for k := range size {
				s += a[i*size+k] * b[k*size+j]
			}
			c[i*size+j] = s
		}
	}
	return int64(c[size*size/2])
}

//go:wasmexport hash
func hash(n int32) int64 {
	counts := map[uint32]int64{}
	seed := uint32(3)
	for range n {
		counts[next(&seed)>>17]++
	}
	return int64(len(counts))
}

// words is a word count in the manner of a job.
//
//go:wasmexport words
func words(n int32) int64 {
	line := strings.Repeat("the quick brown fox jumps over the lazy dog again ", 20)
	counts := map[string]int64{}
	for range n {
		for _, w := range strings.Fields(line) {
			counts[w]++
		}
	}
	return counts["the"]
}

// moves moves many small pieces of memory, and structs.
//
//go:wasmexport copy
func moves(n int32) int64 {
	type record struct{ fields [12]int64 }
	from, to := make([]byte, 4096), make([]byte, 4096)
	records := make([]record, 64)
	seed := uint32(4)
	for i := range n {
		l := next(&seed) >> 24
		copy(to[l&63:], from[l>>2:l>>2+l+16])
		from[l] = byte(i)
		r := records[l&63]
		r.fields[i&7]++
		records[i&63] = r
		clear(to[l : l+l>>1])
	}
	return int64(to[100]) + records[7].fields[1]
}
