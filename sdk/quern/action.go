package quern

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// action is one running job: what its tasks do, by the number under which the
// host calls them.
type action struct {
	id         uint32
	name, site string
	rdd        *node
	task       func(p int)
	shuffles   map[uint32]*shuffle // of the lineage
}

// results collects what a task of an action sends to the driver. A batch begins
// with the partition and the length of the rest, 4 bytes little-endian each.
type results struct{ *portWriter }

const resultHead = 8

func openResults(id uint32, p int) *results {
	r := &results{portWriter: openWriter(abi.PortResult, id, p, "results")}
	r.head = resultHead
	r.prefix = func(b []byte) {
		binary.LittleEndian.PutUint32(b, uint32(p))
		binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-resultHead))
	}
	r.b = make([]byte, resultHead, 64)
	return r
}

// runJob is every action. run writes a partition's results, in a task; receive
// gets them in the driver, in the order of the partitions, in one or more
// batches each, and owns the bytes. It answers false if they are damaged.
// partitions are those to run, nil for all.
func (r *rdd[T]) runJob(name string, partitions []int, sink *abi.SinkDesc,
	run func(p int, out *results), receive func(p int, b []byte) bool) error {
	a := &action{id: nextID(&registry.actionIDs), name: name, rdd: r.base()}
	a.task = func(p int) {
		out := openResults(a.id, p)
		run(p, out)
		out.close()
	}
	return a.run(partitions, sink, receive)
}

func (a *action) run(partitions []int, sink *abi.SinkDesc, receive func(p int, b []byte) bool) (err error) {
	a.site = callSite()
	if err := checkDriver(a.name, a.site); err != nil {
		return err
	}
	if a.rdd.err != nil {
		return a.rdd.err
	}
	a.shuffles = lineageShuffles(a.rdd)
	registerAction(a)
	defer unregisterAction(a)
	defer func() { // a zero value that cannot be copied, for one, is found here
		if p := recover(); p != nil {
			f, ok := p.(*taskFailure)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%s at %s: %w", a.name, a.site, f)
		}
	}()
	job := hostJobRun(&abi.JobDesc{
		RDD: a.rdd.id, Action: a.id, Name: a.name, CallSite: a.site, Partitions: partitions, Sink: sink,
		Dropped: takeDropped(),
	})
	if job < 0 {
		return a.failed(job)
	}
	defer hostJobClose(job)
	size := firstGuess
	for {
		buf := make([]byte, size)
		n := hostJobNext(job, buf)
		if n > int64(len(buf)) {
			buf = make([]byte, n)
			n = hostJobNext(job, buf)
		}
		switch {
		case n < 0:
			return a.failed(n)
		case n == 0:
			return nil
		}
		if !eachResult(buf[:n], receive) {
			return fmt.Errorf("%s at %s: a result of %d bytes is damaged", a.name, a.site, n)
		}
		size = min(4*size, abi.BatchSize)
	}
}

func (a *action) failed(code int64) error {
	return &JobError{Action: a.name, CallSite: a.site, Code: abi.Code(code), Text: lastError(code)}
}

// eachResult takes apart what the host has joined.
func eachResult(b []byte, receive func(p int, b []byte) bool) bool {
	for len(b) > 0 {
		if len(b) < resultHead {
			return false
		}
		p, n := binary.LittleEndian.Uint32(b), uint64(binary.LittleEndian.Uint32(b[4:]))
		b = b[resultHead:]
		if n > uint64(len(b)) || !receive(int(p), b[:n:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// put adds a value to the results.
func (r *results) put(c *codec, p unsafe.Pointer) {
	if c.least == 0 {
		r.b = append(r.b, 0) // so that values without information can be counted
	}
	c.enc(&r.encoder, p)
	if r.full() {
		r.flush()
	}
}

// eachValue reads what put has written.
func eachValue[T any](c *codec, b []byte, one func(T)) bool {
	d := decoder{b: b}
	slot := new(T)
	for d.pos < len(b) {
		if c.least == 0 {
			d.take(1)
		}
		var zero T
		*slot = zero
		if c.dec(&d, unsafe.Pointer(slot)); d.bad {
			return false
		}
		one(*slot)
	}
	return true
}

// resultCodec is T's codec for an action's result.
func resultCodec[T any](n *node, name string) (*codec, error) {
	if n.err != nil {
		return nil, n.err
	}
	c, err := codecOf[T]()
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", name, callSite(), err)
	}
	return c, nil
}

// gather runs an action in which each partition sends values of R.
func gather[T, R any](in *rdd[T], name string, partitions []int,
	run func(p int, in iter.Seq[T], send func(R)), receive func(p int, v R)) error {
	c, err := resultCodec[R](in.base(), name)
	if err != nil {
		return err
	}
	return in.runJob(name, partitions, nil, func(p int, out *results) {
		slot := new(R)
		run(p, in.each(p), func(v R) {
			*slot = v
			out.put(c, unsafe.Pointer(slot))
		})
	}, func(p int, b []byte) bool {
		return eachValue(c, b, func(v R) { receive(p, v) })
	})
}

// Collect returns all elements, in the order of the partitions. They must fit in
// the driver's memory.
func (r RDD[T]) Collect() ([]T, error) { return collect(r.r) }

func collect[T any](in *rdd[T]) ([]T, error) {
	all := []T{}
	err := gather(in, "collect", nil, func(_ int, in iter.Seq[T], send func(T)) {
		in(func(v T) bool { send(v); return true })
	}, func(_ int, v T) { all = append(all, v) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Count returns the number of elements.
func (r RDD[T]) Count() (int64, error) { return count(r.r) }

func count[T any](in *rdd[T]) (int64, error) {
	var total int64
	err := gather(in, "count", nil, func(_ int, in iter.Seq[T], send func(int64)) {
		n := int64(0)
		in(func(T) bool { n++; return true })
		send(n)
	}, func(_ int, n int64) { total += n })
	if err != nil {
		return 0, err
	}
	return total, nil
}

// Reduce combines all elements with f, which must be associative and
// commutative. Partitions are combined in their order. An empty RDD is ErrEmpty.
func (r RDD[T]) Reduce(f func(T, T) T) (T, error) { return reduce(r.r, "reduce", entry(f), f) }

func reduce[T any](in *rdd[T], name string, entry uintptr, f func(T, T) T) (T, error) {
	var whole T
	some := false
	if err := needFunction(in.base(), name, entry); err != nil {
		return whole, err
	}
	err := gather(in, name, nil, func(_ int, in iter.Seq[T], send func(T)) {
		var acc T
		any := false
		in(func(v T) bool {
			if any {
				acc = f(acc, v)
			} else {
				acc, any = v, true
			}
			return true
		})
		if any {
			send(acc)
		}
	}, func(_ int, v T) {
		if some {
			whole = f(whole, v)
		} else {
			whole, some = v, true
		}
	})
	if err == nil && !some {
		err = emptyError(name)
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return whole, nil
}

func emptyError(name string) error {
	return fmt.Errorf("%s at %s of an %w", name, callSite(), ErrEmpty)
}

func needFunction(n *node, name string, entries ...uintptr) error {
	for _, e := range entries {
		if e == 0 && n.err == nil {
			return fmt.Errorf("%s at %s: the function is nil", name, callSite())
		}
	}
	return nil
}

// Fold combines all elements with f, starting from a copy of zero in each
// partition and once more in the driver; zero should not matter to f.
func (r RDD[T]) Fold(zero T, f func(T, T) T) (T, error) {
	return aggregate(r.r, "fold", zero, f, f)
}

// Aggregate folds each partition with add, from a copy of zero on, and then the
// results with merge, in the order of the partitions, from zero on.
func (r RDD[T]) Aggregate[U any](zero U, add func(U, T) U, merge func(U, U) U) (U, error) {
	return aggregate(r.r, "aggregate", zero, add, merge)
}

func aggregate[T, U any](in *rdd[T], name string, zero U, add func(U, T) U, merge func(U, U) U) (U, error) {
	var none U
	if err := needFunction(in.base(), name, entry(add), entry(merge)); err != nil {
		return none, err
	}
	if _, err := resultCodec[U](in.base(), name); err != nil {
		return none, err
	}
	fresh, err := cloner(zero)
	if err != nil {
		return none, fmt.Errorf("%s at %s: %w", name, callSite(), err)
	}
	var parts []U
	err = gather(in, name, nil, func(_ int, in iter.Seq[T], send func(U)) {
		acc := fresh()
		in(func(v T) bool { acc = add(acc, v); return true })
		send(acc)
	}, func(_ int, v U) { parts = append(parts, v) })
	if err != nil {
		return none, err
	}
	whole := zero
	for _, v := range parts {
		whole = merge(whole, v)
	}
	return whole, nil
}

// First returns the first element. An empty RDD is ErrEmpty.
func (r RDD[T]) First() (T, error) { return first(r.r) }

func first[T any](in *rdd[T]) (T, error) {
	var none T
	found, err := take(in, "first", 1)
	if err != nil {
		return none, err
	}
	if len(found) == 0 {
		return none, emptyError("first")
	}
	return found[0], nil
}

// Take returns the first n elements, or all if there are fewer. It computes the
// first partition, and then up to four times as many in each round, until it has
// enough.
func (r RDD[T]) Take(n int) ([]T, error) { return take(r.r, "take", n) }

func take[T any](in *rdd[T], name string, n int) ([]T, error) {
	base := in.base()
	if _, err := resultCodec[T](base, name); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("%s at %s: %d elements", name, callSite(), n)
	}
	found := []T{}
	for done, width := 0, 1; len(found) < n && done < base.parts; width *= 4 {
		width = min(width, base.parts-done)
		partitions := make([]int, width)
		for i := range partitions {
			partitions[i] = done + i
		}
		left := n - len(found)
		err := gather(in, name, partitions, func(_ int, in iter.Seq[T], send func(T)) {
			sent := 0
			in(func(v T) bool { send(v); sent++; return sent < left })
		}, func(_ int, v T) {
			if len(found) < n {
				found = append(found, v)
			}
		})
		if err != nil {
			return nil, err
		}
		done += width
	}
	return found, nil
}

// IsEmpty says whether there are no elements.
func (r RDD[T]) IsEmpty() (bool, error) { return isEmpty(r.r) }

func isEmpty[T any](in *rdd[T]) (bool, error) {
	found, err := take(mapElements(in, "isEmpty", nil, nil, func(T) bool { return true }), "isEmpty", 1)
	return err == nil && len(found) == 0, err
}

// Foreach calls f with each element, in tasks: what f changes in memory is gone
// with the task.
func (r RDD[T]) Foreach(f func(T)) error {
	return foreach(r.r, "foreach", entry(f), func(in iter.Seq[T]) {
		in(func(v T) bool { f(v); return true })
	})
}

// ForeachPartition calls f with each partition, in tasks.
func (r RDD[T]) ForeachPartition(f func(iter.Seq[T])) error {
	return foreach(r.r, "foreachPartition", entry(f), f)
}

func foreach[T any](in *rdd[T], name string, entry uintptr, f func(iter.Seq[T])) error {
	if err := needFunction(in.base(), name, entry); err != nil {
		return err
	}
	return in.runJob(name, nil, nil, func(p int, _ *results) { f(in.each(p)) },
		func(int, []byte) bool { return true })
}

// CountByValue returns how often each element occurs.
func CountByValue[T comparable](r RDD[T]) (map[T]int64, error) {
	return countBy(r.r, "countByValue", func(v T) T { return v })
}

func countBy[T any, K comparable](in *rdd[T], name string, by func(T) K) (map[K]int64, error) {
	k, err := keyCodecOf[K](false)
	if err != nil && in.base().err == nil {
		return nil, fmt.Errorf("%s at %s: %w", name, callSite(), keyError(err))
	}
	counts := keyMap[K, int64]{values: map[K]int64{}, codec: k}
	err = gather(in, name, nil, func(_ int, in iter.Seq[T], send func(Pair[K, int64])) {
		t := newTable()
		var numbers []int64
		var e encoder
		slot, d := new(K), new(decoder)
		flush := func() {
			for i, n := range numbers {
				var zero K
				*slot = zero
				d.key(k, t.key(i), unsafe.Pointer(slot))
				send(Pair[K, int64]{*slot, n})
			}
			numbers = numbers[:0]
			t.reset()
		}
		in(func(v T) bool {
			*slot = by(v)
			e.b = e.b[:0]
			k.enc(&e, unsafe.Pointer(slot))
			i := t.find(e.b)
			if i == len(numbers) {
				numbers = append(numbers, 0)
			}
			numbers[i]++
			if t.full() {
				flush()
			}
			return true
		})
		flush()
	}, func(_ int, p Pair[K, int64]) { counts.put(p, func(n int64) int64 { return n + p.Value }) })
	if err != nil {
		return nil, err
	}
	return counts.whole(), nil
}

// keyMap is a map in which NaN, and what contains one, is a key like others, as
// it is everywhere else. In a Go map no NaN is ever found again.
type keyMap[K comparable, V any] struct {
	values map[K]V
	codec  *keyCodec              // nil if K is no key elsewhere
	odd    map[string]*Pair[K, V] // those with NaN, by their encoding
}

// put enters what value makes of what is there for the pair's key.
func (m *keyMap[K, V]) put(p Pair[K, V], value func(V) V) {
	if p.Key == p.Key || m.codec == nil {
		m.values[p.Key] = value(m.values[p.Key])
		return
	}
	var e encoder
	m.codec.enc(&e, unsafe.Pointer(&p.Key))
	there := m.odd[string(e.b)]
	if there == nil {
		if m.odd == nil {
			m.odd = map[string]*Pair[K, V]{}
		}
		there = &Pair[K, V]{Key: p.Key}
		m.odd[string(e.b)] = there
	}
	there.Value = value(there.Value)
}

// whole returns the map.
func (m *keyMap[K, V]) whole() map[K]V {
	for _, p := range m.odd {
		m.values[p.Key] = p.Value
	}
	return m.values
}

// Number is any type that Sum can add.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Sum adds all elements, each partition by itself and then the partitions in
// their order. The sum of an empty RDD is 0.
func Sum[T Number](r RDD[T]) (T, error) {
	var total T
	err := gather(r.r, "sum", nil, func(_ int, in iter.Seq[T], send func(T)) {
		var sum T
		in(func(v T) bool { sum += v; return true })
		send(sum)
	}, func(_ int, v T) { total += v })
	if err != nil {
		return 0, err
	}
	return total, nil
}

// Max returns the largest element in the order of cmp.Compare, in which NaN is
// the smallest. An empty RDD is ErrEmpty.
func Max[T cmp.Ordered](r RDD[T]) (T, error) {
	f := func(a, b T) T {
		if cmp.Compare(a, b) < 0 {
			return b
		}
		return a
	}
	return reduce(r.r, "max", entry(f), f)
}

// Min returns the smallest element in the order of cmp.Compare, in which NaN is
// the smallest. An empty RDD is ErrEmpty.
func Min[T cmp.Ordered](r RDD[T]) (T, error) {
	f := func(a, b T) T {
		if cmp.Compare(b, a) < 0 {
			return b
		}
		return a
	}
	return reduce(r.r, "min", entry(f), f)
}
