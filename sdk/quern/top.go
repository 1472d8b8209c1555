package quern

import (
	"fmt"
	"iter"
	"slices"
)

// Top returns the n largest elements in the order of compare, the largest first.
// Of equal elements, those that come first are taken.
func (r RDD[T]) Top(n int, compare func(T, T) int) ([]T, error) { return top(r.r, n, compare) }

// TakeOrdered returns the n smallest elements in the order of compare, the
// smallest first. Of equal elements, those that come first are taken.
func (r RDD[T]) TakeOrdered(n int, compare func(T, T) int) ([]T, error) {
	return takeOrdered(r.r, "takeOrdered", n, entry(compare), compare)
}

func top[T any](in *rdd[T], n int, compare func(T, T) int) ([]T, error) {
	return takeOrdered(in, "top", n, entry(compare), func(a, b T) int { return compare(b, a) })
}

func takeOrdered[T any](in *rdd[T], name string, n int, entry uintptr, compare func(T, T) int) ([]T, error) {
	if err := needFunction(in.base(), name, entry); err != nil {
		return nil, err
	}
	if _, err := resultCodec[T](in.base(), name); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("%s at %s: %d elements", name, callSite(), n)
	}
	if n == 0 {
		return []T{}, nil
	}
	best := smallest[T]{n: n, compare: compare}
	err := gather(in, name, nil, func(_ int, in iter.Seq[T], send func(T)) {
		own := smallest[T]{n: n, compare: compare}
		in(func(v T) bool { own.add(v); return true })
		for _, v := range own.sorted() {
			send(v)
		}
	}, func(_ int, v T) { best.add(v) })
	if err != nil {
		return nil, err
	}
	return best.sorted(), nil
}

// smallest keeps the n smallest of what it is given, in a heap with the largest
// of them on top. Equal elements are told apart by when they came.
type smallest[T any] struct {
	n       int
	compare func(T, T) int
	heap    []ranked[T]
	came    int64
}

type ranked[T any] struct {
	v    T
	came int64
}

// after says whether a is behind b.
func (s *smallest[T]) after(a, b *ranked[T]) bool {
	if c := s.compare(a.v, b.v); c != 0 {
		return c > 0
	}
	return a.came > b.came
}

func (s *smallest[T]) add(v T) {
	s.came++
	if len(s.heap) < s.n {
		s.heap = append(s.heap, ranked[T]{v, s.came})
		for i := len(s.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !s.after(&s.heap[i], &s.heap[up]) {
				break
			}
			s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
			i = up
		}
		return
	}
	if s.compare(v, s.heap[0].v) >= 0 {
		return
	}
	s.heap[0] = ranked[T]{v, s.came}
	for i := 0; ; {
		largest := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.heap); child++ {
			if s.after(&s.heap[child], &s.heap[largest]) {
				largest = child
			}
		}
		if largest == i {
			return
		}
		s.heap[i], s.heap[largest] = s.heap[largest], s.heap[i]
		i = largest
	}
}

// sorted returns what was kept, the smallest first.
func (s *smallest[T]) sorted() []T {
	slices.SortStableFunc(s.heap, func(a, b ranked[T]) int {
		if s.after(&a, &b) {
			return 1
		}
		return -1
	})
	out := make([]T, len(s.heap))
	for i := range s.heap {
		out[i] = s.heap[i].v
	}
	return out
}
