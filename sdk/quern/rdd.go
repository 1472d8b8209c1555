package quern

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/quern-project/quern/sdk/abi"
)

// RDD is a distributed collection of T, in partitions, that is computed when an
// action needs it. It is a small value; copy it freely. RDDs come from a
// Context and from the transformations of other RDDs.
//
// A mistake in a transformation (a nil function, a type that cannot be a key, a
// call inside a closure) is kept in the RDD and returned by every action on it
// or on what is made of it; Err returns it at once.
type RDD[T any] struct {
	r *rdd[T]
}

// node is what an RDD is, whatever its elements: a vertex of the lineage, known
// to the host under its id.
type node struct {
	ctx      *Context
	id       uint32
	name     string // the operation
	site     string // where the user called it
	parts    int
	err      error // why it cannot be computed; then it has no id
	parents  []*node
	shuffles []*shuffle // that it reads
	entries  []uintptr  // code of the user's functions that it calls
	layout   *layout    // where keys lie; nil if anywhere
}

// rdd is a node with its computation.
type rdd[T any] struct {
	node
	// each yields the elements of partition p. It runs in tasks, and may panic
	// (see fail).
	each func(p int) iter.Seq[T]
}

var errZeroRDD = errors.New("a zero RDD value has no elements and no context; get RDDs from Context.Parallelize, Range or TextFile")

// base is the node, also of a zero RDD.
func (r *rdd[T]) base() *node {
	if r == nil {
		return &node{name: "zero RDD", site: callSite(), err: errZeroRDD}
	}
	return &r.node
}

// definition is what a new node is made of.
type definition struct {
	name     string
	ctx      *Context // nil: that of the first parent
	parts    int      // 0: the host derives it
	parents  []*node
	deps     []abi.DepDesc
	shuffles []*shuffle
	entries  []uintptr // 0 stands for a nil function, which is an error
	layout   *layout
	text     *abi.TextDesc
	err      error // an error that the caller has found
}

// define makes a node and tells the host of it.
func define(d definition) node {
	n := node{
		ctx: d.ctx, name: d.name, site: callSite(), parts: d.parts,
		parents: d.parents, shuffles: d.shuffles, entries: d.entries, layout: d.layout,
	}
	if n.ctx == nil && len(d.parents) > 0 {
		n.ctx = d.parents[0].ctx
	}
	for _, s := range d.shuffles {
		s.reader = &node{name: n.name, site: n.site, entries: n.entries}
	}
	n.err = n.check(d)
	if n.err != nil {
		return n
	}
	n.id = nextID(&registry.rdds)
	got := hostRDDDefine(&abi.RDDDesc{
		ID: n.id, Name: n.name, CallSite: n.site, Partitions: n.parts, Deps: d.deps, Text: d.text,
	})
	if got < 0 {
		n.err = fmt.Errorf("%s at %s: %s", n.name, n.site, lastError(got))
		return n
	}
	n.parts = int(got)
	return n
}

func (n *node) check(d definition) error {
	if err := checkDriver(n.name, n.site); err != nil {
		return err
	}
	for _, p := range d.parents {
		if p.err != nil {
			return p.err
		}
		if p.ctx != n.ctx {
			return fmt.Errorf("%s at %s: the RDDs belong to different contexts", n.name, n.site)
		}
	}
	if n.ctx == nil {
		return fmt.Errorf("%s at %s: no context; make one with quern.NewContext", n.name, n.site)
	}
	if d.err != nil {
		return fmt.Errorf("%s at %s: %w", n.name, n.site, d.err)
	}
	for _, e := range d.entries {
		if e == 0 {
			return fmt.Errorf("%s at %s: the function is nil", n.name, n.site)
		}
	}
	return nil
}

// narrow makes an RDD each of whose partitions is computed from the parent's
// partition of the same number.
func narrow[T, R any](in *rdd[T], name string, entries []uintptr, each func(p int, in iter.Seq[T]) iter.Seq[R]) *rdd[R] {
	return narrowLaid(in, name, nil, entries, each)
}

// narrowLaid is narrow for operations that know where keys lie afterwards.
func narrowLaid[T, R any](in *rdd[T], name string, lay *layout, entries []uintptr,
	each func(p int, in iter.Seq[T]) iter.Seq[R]) *rdd[R] {
	parent := in.base()
	return &rdd[R]{
		node: define(definition{
			name: name, parts: parent.parts, parents: []*node{parent}, layout: lay,
			deps:    []abi.DepDesc{{Parent: parent.id, Kind: abi.DepOneToOne}},
			entries: entries,
		}),
		each: func(p int) iter.Seq[R] { return each(p, in.each(p)) },
	}
}

// Err returns the mistake kept in the RDD, nil if there is none.
func (r RDD[T]) Err() error { return r.r.base().err }

// NumPartitions returns the number of partitions, 0 for an RDD in error.
func (r RDD[T]) NumPartitions() int { return numPartitions(r.r.base()) }

func numPartitions(n *node) int {
	if n.err != nil {
		return 0
	}
	return n.parts
}

// Map applies f to each element.
func (r RDD[T]) Map[R any](f func(T) R) RDD[R] {
	return RDD[R]{mapElements(r.r, "map", nil, []uintptr{entry(f)}, f)}
}

func mapElements[T, R any](in *rdd[T], name string, lay *layout, entries []uintptr, f func(T) R) *rdd[R] {
	return narrowLaid(in, name, lay, entries, func(_ int, in iter.Seq[T]) iter.Seq[R] {
		return func(yield func(R) bool) {
			in(func(v T) bool { return yield(f(v)) })
		}
	})
}

// FlatMap applies f to each element and yields the elements of the results.
func (r RDD[T]) FlatMap[R any](f func(T) []R) RDD[R] {
	return RDD[R]{flatMapElements(r.r, "flatMap", nil, []uintptr{entry(f)}, f)}
}

func flatMapElements[T, R any](in *rdd[T], name string, lay *layout, entries []uintptr, f func(T) []R) *rdd[R] {
	if fast := knownFlatMap[T, R](f); fast != nil {
		return flatMapYielding(in, name, entries, fast)
	}
	return narrowLaid(in, name, lay, entries, func(_ int, in iter.Seq[T]) iter.Seq[R] {
		return func(yield func(R) bool) {
			in(func(v T) bool {
				for _, w := range f(v) {
					if !yield(w) {
						return false
					}
				}
				return true
			})
		}
	})
}

// FlatMapSeq is FlatMap for functions that produce their results one by one,
// such as strings.FieldsSeq; it saves the slice.
func (r RDD[T]) FlatMapSeq[R any](f func(T) iter.Seq[R]) RDD[R] {
	if fast := knownFlatMap[T, R](f); fast != nil {
		return RDD[R]{flatMapYielding(r.r, "flatMap", []uintptr{entry(f)}, fast)}
	}
	return RDD[R]{narrow(r.r, "flatMap", []uintptr{entry(f)}, func(_ int, in iter.Seq[T]) iter.Seq[R] {
		return func(yield func(R) bool) {
			more := true
			one := func(w R) bool { more = yield(w); return more }
			in(func(v T) bool { f(v)(one); return more })
		}
	})}
}

// flatMapYielding is flatMap for functions that answer whether to go on.
func flatMapYielding[T, R any](in *rdd[T], name string, entries []uintptr, f func(T, func(R) bool) bool) *rdd[R] {
	return narrow(in, name, entries, func(_ int, in iter.Seq[T]) iter.Seq[R] {
		return func(yield func(R) bool) {
			in(func(v T) bool { return f(v, yield) })
		}
	})
}

// Filter keeps the elements for which keep is true.
func (r RDD[T]) Filter(keep func(T) bool) RDD[T] {
	return RDD[T]{filterElements(r.r, []uintptr{entry(keep)}, keep)}
}

func filterElements[T any](in *rdd[T], entries []uintptr, keep func(T) bool) *rdd[T] {
	return narrowLaid(in, "filter", in.base().layout, entries, func(_ int, in iter.Seq[T]) iter.Seq[T] {
		return func(yield func(T) bool) {
			in(func(v T) bool { return !keep(v) || yield(v) })
		}
	})
}

// MapPartitions applies f to each partition as a whole. The sequence that f
// receives can be ranged over once.
func (r RDD[T]) MapPartitions[R any](f func(iter.Seq[T]) iter.Seq[R]) RDD[R] {
	return RDD[R]{narrow(r.r, "mapPartitions", []uintptr{entry(f)}, func(_ int, in iter.Seq[T]) iter.Seq[R] {
		return f(in)
	})}
}

// MapPartitionsWithIndex is MapPartitions with the number of the partition.
func (r RDD[T]) MapPartitionsWithIndex[R any](f func(int, iter.Seq[T]) iter.Seq[R]) RDD[R] {
	return RDD[R]{narrow(r.r, "mapPartitionsWithIndex", []uintptr{entry(f)}, f)}
}

// Sample keeps each element with the probability fraction, in [0, 1]. The
// choice depends on the seed and the partition alone, so that the sample is the
// same each time it is computed.
func (r RDD[T]) Sample(fraction float64, seed uint64) RDD[T] {
	var err error
	if !(fraction >= 0 && fraction <= 1) {
		err = fmt.Errorf("the fraction is %v, not between 0 and 1", fraction)
	}
	parent := r.r.base()
	return RDD[T]{&rdd[T]{
		node: define(definition{
			name: "sample", parts: parent.parts, parents: []*node{parent}, layout: parent.layout, err: err,
			deps: []abi.DepDesc{{Parent: parent.id, Kind: abi.DepOneToOne}},
		}),
		each: func(p int) iter.Seq[T] {
			return func(yield func(T) bool) {
				random := rand.New(rand.NewPCG(seed, uint64(p)))
				r.r.each(p)(func(v T) bool { return random.Float64() >= fraction || yield(v) })
			}
		},
	}}
}

// Union is the elements of r and then those of the others, partitions one after
// the other.
func (r RDD[T]) Union(others ...RDD[T]) RDD[T] {
	all := []*rdd[T]{r.r}
	for _, o := range others {
		all = append(all, o.r)
	}
	return RDD[T]{union(all)}
}

func union[T any](all []*rdd[T]) *rdd[T] {
	d := definition{name: "union"}
	starts := make([]int, len(all))
	for i, in := range all {
		parent := in.base()
		starts[i] = d.parts
		d.deps = append(d.deps, abi.DepDesc{Parent: parent.id, Kind: abi.DepRange, Start: d.parts})
		d.parents = append(d.parents, parent)
		d.parts += parent.parts
	}
	return &rdd[T]{
		node: define(d),
		each: func(p int) iter.Seq[T] {
			i := len(all) - 1
			for starts[i] > p {
				i--
			}
			return all[i].each(p - starts[i])
		},
	}
}

// Coalesce lowers the number of partitions to n by joining neighbours, without
// moving data between tasks. With n at or above the present number, r is
// returned as it is; Repartition raises the number.
func (r RDD[T]) Coalesce(n int) RDD[T] { return RDD[T]{coalesce(r.r, n)} }

func coalesce[T any](in *rdd[T], n int) *rdd[T] {
	parent := in.base()
	if parent.err == nil && n >= parent.parts && parent.parts > 0 {
		return in
	}
	m := parent.parts
	return &rdd[T]{
		node: define(definition{
			name: "coalesce", parts: n, parents: []*node{parent}, err: checkPartitions(n),
			deps: []abi.DepDesc{{Parent: parent.id, Kind: abi.DepCoalesce}},
		}),
		each: func(p int) iter.Seq[T] {
			return func(yield func(T) bool) {
				more := true
				one := func(v T) bool { more = yield(v); return more }
				for i := share(p, n, m); i < share(p+1, n, m) && more; i++ {
					in.each(i)(one)
				}
			}
		},
	}
}

// share is where part i of n begins when m are divided evenly: i*m/n without
// the product's overflow for the sizes that occur (i, n below 2^31).
func share(i, n, m int) int {
	return m/n*i + m%n*i/n
}

// maxPartitions bounds the number of partitions of one RDD: a number above it is
// a mistake, and the engine keeps some state for each.
const maxPartitions = 1 << 24

func checkPartitions(n int) error {
	if n < 1 || n > maxPartitions {
		return fmt.Errorf("the number of partitions is %d, not between 1 and %d", n, maxPartitions)
	}
	return nil
}

// KeyBy makes pairs of the key that f returns and the element.
func (r RDD[T]) KeyBy[K comparable](f func(T) K) PairRDD[K, T] {
	return PairRDD[K, T]{narrow(r.r, "keyBy", []uintptr{entry(f)}, func(_ int, in iter.Seq[T]) iter.Seq[Pair[K, T]] {
		return func(yield func(Pair[K, T]) bool) {
			in(func(v T) bool { return yield(Pair[K, T]{f(v), v}) })
		}
	})}
}

// MapToPair makes a pair of each element.
func (r RDD[T]) MapToPair[K comparable, V any](f func(T) (K, V)) PairRDD[K, V] {
	return PairRDD[K, V]{narrow(r.r, "mapToPair", []uintptr{entry(f)}, func(_ int, in iter.Seq[T]) iter.Seq[Pair[K, V]] {
		return func(yield func(Pair[K, V]) bool) {
			in(func(v T) bool {
				key, value := f(v)
				return yield(Pair[K, V]{key, value})
			})
		}
	})}
}
