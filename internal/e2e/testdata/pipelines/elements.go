package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The types of elements, keys and values. Their values are few, so that keys
// meet, and odd.

// word is a string type of its own.
type word string

// point is a struct that can be a key.
type point struct {
	X    int16
	Name word
	F    float64
	_    int32
	In   [2]bool
}

// record is what a value can be, and a key cannot.
type record struct {
	ID    int64
	W     float64
	Tags  []word
	Bytes []byte
	next  *record
	Count map[word]int8
	Empty struct{}
}

// GoString shows a record with what its pointer leads to.
func (r record) GoString() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{%d %x %#v %#v %#v", r.ID, math.Float64bits(r.W), r.Tags, r.Bytes, r.Count)
	if r.next != nil {
		b.WriteString(r.next.GoString())
	}
	b.WriteByte('}')
	return b.String()
}

// value makes a value of a number.
func value[T any](x uint64) T {
	var v T
	switch v := any(&v).(type) {
	case *bool:
		*v = x%2 == 0
	case *int64:
		*v = []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 256, -257, int64(x % 50), int64(x)}[x%9]
	case *float64:
		*v = []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 0.1, -1e300, float64(x%20) - 10}[x%8]
	case *word:
		*v = []word{"", "a", "\x00", "a\x00b", "\xff\xfe", "a\xff", "é", word(strings.Repeat("x", int(x/16%300))), word(fmt.Sprint(x / 16 % 30))}[x%9]
	case *point:
		*v = point{X: int16(value[int64](x)), Name: value[word](x / 3), F: value[float64](x / 2), In: [2]bool{x%3 == 0, x%5 == 0}}
	case *record:
		*v = record{ID: int64(x % 100), W: value[float64](x / 5)}
		for i := range x % 4 {
			v.Tags = append(v.Tags, value[word](x/7+i))
		}
		switch x / 11 % 4 {
		case 0:
			v.Tags, v.Bytes, v.Count = []word{}, []byte{}, map[word]int8{}
		case 1:
			v.next = &record{ID: -1, Bytes: []byte{0, 255}, Count: map[word]int8{"": 1, "b": 2}}
		case 2:
			v.next = &record{next: &record{Tags: []word{"deep"}}}
		}
	}
	return v
}

// asKey is what a value is when it has travelled as a key.
func asKey[K any](v K) K {
	if p, ok := any(&v).(*point); ok && p.F == 0 {
		p.F = 0
	}
	return v
}

// isKey says whether values of a type can be keys.
func isKey[T any]() bool {
	switch any(*new(T)).(type) {
	case int64, word, point:
		return true
	}
	return false
}

// order is the order of keys.
func order[K any](a, b K) int {
	switch a := any(a).(type) {
	case bool:
		b := any(b).(bool)
		switch {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	case int64:
		return cmp.Compare(a, any(b).(int64))
	case float64:
		b := any(b).(float64)
		switch {
		case math.IsNaN(a) && math.IsNaN(b):
			return 0
		case math.IsNaN(a):
			return 1
		case math.IsNaN(b):
			return -1
		}
		return cmp.Compare(a, b)
	case word:
		return bytes.Compare([]byte(a), []byte(any(b).(word)))
	case point:
		b := any(b).(point)
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Name, b.Name), order(a.F, b.F), order(a.In[0], b.In[0]), order(a.In[1], b.In[1]))
	}
	panic(fmt.Sprintf("no order of %T", a))
}

// flat joins partitions.
func flat[T any](parts [][]T) []T { return slices.Concat(parts...) }

// each applies f to each partition.
func each[T, R any](parts [][]T, f func(p int, in []T) []R) [][]R {
	out := make([][]R, len(parts))
	for i := range parts {
		out[i] = f(i, parts[i])
	}
	return out
}

// mapped applies f to each element.
func mapped[T, R any](parts [][]T, f func(T) R) [][]R {
	return each(parts, func(_ int, in []T) []R {
		out := make([]R, len(in))
		for i, v := range in {
			out[i] = f(v)
		}
		return out
	})
}

// cut deals elements out to n partitions as Parallelize does.
func cut[T any](all []T, n int) [][]T {
	out := make([][]T, n)
	for i := range out {
		out[i] = all[i*len(all)/n : (i+1)*len(all)/n]
	}
	return out
}

// sameElements says whether two slices have the same elements in any order.
func sameElements[T any](a, b []T) bool {
	text := func(s []T) []string {
		out := make([]string, len(s))
		for i := range s {
			out[i] = show(s[i])
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(text(a), text(b))
}
