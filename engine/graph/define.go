package graph

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Limits on what a guest may define. They are far above what a job needs, and
// bound what a mistaken or hostile one costs the driver.
const (
	// MaxPartitions is the largest number of partitions of an RDD or shuffle.
	MaxPartitions = 1 << 22
	// MaxRDDs is the largest number of RDDs of an application.
	MaxRDDs = 1 << 22
	// MaxDeps is the largest number of dependencies of one RDD.
	MaxDeps = 1 << 20
	// MaxText is the largest length in bytes of a name and of a call site.
	MaxText = 4 << 10
	// MaxBounds is the largest length in bytes of a shuffle's bounds together.
	MaxBounds = 64 << 20
)

// Define adds an RDD and the shuffles that it reads, and returns its number of
// partitions. text holds the pieces of a text source's partitions, which the
// host found, and is nil unless d.Text is set. Define keeps d and text; the
// caller must not change them afterwards. If it fails, nothing was added; the
// error is for the job's author and names the RDD.
func (g *Graph) Define(d abi.RDDDesc, text [][]msg.Piece) (int, error) {
	r, fresh, err := g.check(d, text)
	if err != nil {
		return 0, fmt.Errorf("define RDD %d%s: %w", d.ID, describe(d.Name, d.CallSite), err)
	}
	g.rdds[r.ID] = r
	maps.Copy(g.shuffles, fresh)
	return r.Partitions, nil
}

// describe gives " (map at main.go:9)" or as much of it as is known.
func describe(name, callSite string) string {
	const most = 200
	if len(name) > most {
		name = name[:most] + "..."
	}
	if len(callSite) > most {
		callSite = callSite[:most] + "..."
	}
	switch {
	case name == "" && callSite == "":
		return ""
	case name == "":
		return fmt.Sprintf(" (at %s)", callSite)
	case callSite == "":
		return fmt.Sprintf(" (%s)", name)
	}
	return fmt.Sprintf(" (%s at %s)", name, callSite)
}

// check builds the RDD and its new shuffles without adding them.
func (g *Graph) check(d abi.RDDDesc, text [][]msg.Piece) (*RDD, map[msg.ShuffleID]*Shuffle, error) {
	id := msg.RDDID(d.ID)
	switch {
	case id == 0:
		return nil, nil, errors.New("RDDs are numbered from 1")
	case g.rdds[id] != nil:
		old := g.rdds[id]
		return nil, nil, fmt.Errorf("the number is taken by another RDD%s", describe(old.Name, old.CallSite))
	case len(g.rdds) >= MaxRDDs:
		return nil, nil, fmt.Errorf("the application has %d RDDs, more are refused", MaxRDDs)
	case len(d.Name) > MaxText:
		return nil, nil, fmt.Errorf("the name is %d bytes long, at most %d are allowed", len(d.Name), MaxText)
	case len(d.CallSite) > MaxText:
		return nil, nil, fmt.Errorf("the call site is %d bytes long, at most %d are allowed", len(d.CallSite), MaxText)
	case len(d.Deps) > MaxDeps:
		return nil, nil, fmt.Errorf("%d dependencies, at most %d are allowed", len(d.Deps), MaxDeps)
	case d.Partitions < 0 || d.Partitions > MaxPartitions:
		return nil, nil, partitionsError(d.Partitions, 0)
	case d.Text != nil && len(d.Deps) > 0:
		return nil, nil, errors.New("a text source cannot depend on other RDDs")
	case d.Text == nil && text != nil:
		return nil, nil, errors.New("pieces of text were given for an RDD that is not a text source")
	}
	r := &RDD{ID: id, Name: d.Name, CallSite: d.CallSite, Partitions: d.Partitions}
	if d.Text != nil {
		if len(text) > MaxPartitions {
			return nil, nil, partitionsError(len(text), 0)
		}
		if d.Partitions != 0 && d.Partitions != len(text) {
			return nil, nil, fmt.Errorf("%d partitions were asked for, but the text has %d", d.Partitions, len(text))
		}
		r.Partitions, r.Text, r.hasText, r.base = len(text), text, true, r
		return r, nil, nil
	}
	fresh, err := g.link(r, d.Deps)
	if err != nil {
		return nil, nil, err
	}
	if err := r.settlePartitions(); err != nil {
		return nil, nil, err
	}
	r.settleBase()
	return r, fresh, nil
}

func partitionsError(n, least int) error {
	return fmt.Errorf("%d partitions: the number must be from %d to %d", n, least, MaxPartitions)
}

// link resolves the dependencies of r, and returns the shuffles among them that
// are new.
func (g *Graph) link(r *RDD, deps []abi.DepDesc) (map[msg.ShuffleID]*Shuffle, error) {
	if len(deps) == 0 {
		return nil, nil
	}
	r.Deps = make([]Dep, len(deps))
	fresh := make(map[msg.ShuffleID]*Shuffle)
	for i, d := range deps {
		parent := g.rdds[msg.RDDID(d.Parent)]
		switch {
		case parent == nil:
			return nil, fmt.Errorf("dependency %d: there is no RDD %d; parents are defined first", i, d.Parent)
		case d.Shuffle != nil && d.Kind != abi.DepShuffle:
			return nil, fmt.Errorf("dependency %d on RDD %d: a shuffle is described, but its kind is %d",
				i, d.Parent, d.Kind)
		case d.Start != 0 && d.Kind != abi.DepRange:
			return nil, fmt.Errorf("dependency %d on RDD %d: start %d is given, but its kind is %d",
				i, d.Parent, d.Start, d.Kind)
		}
		dep := Dep{Kind: d.Kind, Parent: parent, Start: d.Start}
		switch d.Kind {
		case abi.DepOneToOne, abi.DepRange, abi.DepCoalesce:
		case abi.DepShuffle:
			s, err := g.shuffle(parent, d.Shuffle, fresh)
			if err != nil {
				return nil, fmt.Errorf("dependency %d on RDD %d: %w", i, d.Parent, err)
			}
			dep.Shuffle = s
		default:
			return nil, fmt.Errorf("dependency %d on RDD %d: unknown kind %d", i, d.Parent, d.Kind)
		}
		r.Deps[i] = dep
	}
	return fresh, nil
}

// shuffle returns the shuffle that d describes: a known one, or else one of
// fresh, to which it is added if it is new.
func (g *Graph) shuffle(parent *RDD, d *abi.ShuffleDesc, fresh map[msg.ShuffleID]*Shuffle) (*Shuffle, error) {
	if d == nil {
		return nil, errors.New("a shuffle dependency without a shuffle")
	}
	if err := checkShuffle(d); err != nil {
		return nil, fmt.Errorf("shuffle %d: %w", d.ID, err)
	}
	id := msg.ShuffleID(d.ID)
	old := g.shuffles[id]
	if old == nil {
		old = fresh[id]
	}
	switch {
	case old == nil:
		s := &Shuffle{ID: id, Desc: *d, Parent: parent}
		fresh[id] = s
		return s, nil
	case old.Parent != parent:
		return nil, fmt.Errorf("shuffle %d is of RDD %d already", d.ID, old.Parent.ID)
	case !sameShuffle(&old.Desc, d):
		return nil, fmt.Errorf("shuffle %d was described differently before", d.ID)
	}
	return old, nil
}

func checkShuffle(d *abi.ShuffleDesc) error {
	switch {
	case d.ID == 0:
		return errors.New("shuffles are numbered from 1")
	case d.Partitions < 1 || d.Partitions > MaxPartitions:
		return partitionsError(d.Partitions, 1)
	}
	switch d.Partitioner {
	case abi.PartitionHash, abi.PartitionGiven:
		if len(d.Bounds) > 0 {
			return errors.New("bounds are for range partitioning only")
		}
	case abi.PartitionRange:
		if len(d.Bounds) > d.Partitions-1 {
			return fmt.Errorf("%d bounds for %d partitions: at most %d are needed",
				len(d.Bounds), d.Partitions, d.Partitions-1)
		}
	default:
		return fmt.Errorf("unknown partitioner %d", d.Partitioner)
	}
	total := 0
	for i, b := range d.Bounds {
		if i > 0 && bytes.Compare(d.Bounds[i-1], b) > 0 {
			return fmt.Errorf("bound %d is smaller than the one before it: bounds must ascend", i)
		}
		if total += len(b); total > MaxBounds {
			return fmt.Errorf("the bounds are longer than %d bytes together: use fewer partitions or shorter keys",
				MaxBounds)
		}
	}
	return nil
}

func sameShuffle(a, b *abi.ShuffleDesc) bool {
	if len(a.Bounds) == 0 && len(b.Bounds) == 0 {
		// nil and empty are the same.
		x, y := *a, *b
		x.Bounds, y.Bounds = nil, nil
		return reflect.DeepEqual(x, y)
	}
	return reflect.DeepEqual(a, b)
}

// settlePartitions derives the number of partitions from the dependencies if it
// was not given, and checks that all agree with it.
func (r *RDD) settlePartitions() error {
	for _, d := range r.Deps {
		if d.Kind == abi.DepRange {
			return r.settleUnion()
		}
	}
	known := r.Partitions != 0
	for i, d := range r.Deps {
		var n int
		switch d.Kind {
		case abi.DepOneToOne:
			n = d.Parent.Partitions
		case abi.DepShuffle:
			n = d.Shuffle.Desc.Partitions
		default:
			continue
		}
		if !known {
			r.Partitions, known = n, true
		}
		if n != r.Partitions {
			return fmt.Errorf("dependency %d on RDD %d has %d partitions, the RDD has %d: they must be equal",
				i, d.Parent.ID, n, r.Partitions)
		}
	}
	if !known {
		for i, d := range r.Deps {
			if d.Kind == abi.DepCoalesce && d.Parent.Partitions > 0 {
				return fmt.Errorf("dependency %d on RDD %d: no number of partitions to coalesce to", i, d.Parent.ID)
			}
		}
	}
	return nil
}

// settleUnion does it for range dependencies: they are all of that kind and lie
// one after the other from partition 0 on, without gaps.
func (r *RDD) settleUnion() error {
	next := 0
	for i, d := range r.Deps {
		if d.Kind != abi.DepRange {
			return fmt.Errorf("dependency %d on RDD %d is of kind %d among ranges: it must be a range too",
				i, d.Parent.ID, d.Kind)
		}
		if d.Start != next {
			return fmt.Errorf("dependency %d on RDD %d starts at partition %d, the one before it ends at %d",
				i, d.Parent.ID, d.Start, next)
		}
		if next += d.Parent.Partitions; next > MaxPartitions {
			return partitionsError(next, 0)
		}
	}
	if r.Partitions != 0 && r.Partitions != next {
		return fmt.Errorf("the dependencies cover %d partitions, the RDD has %d", next, r.Partitions)
	}
	r.Partitions, r.union = next, true
	return nil
}

// settleBase fills in what is known of the RDD's stage from its parents.
func (r *RDD) settleBase() {
	r.base = r
	if len(r.Deps) == 1 {
		d := &r.Deps[0]
		if d.Kind != abi.DepShuffle && d.Parent.Partitions == r.Partitions {
			// A union of one, and coalescing n partitions to n, are one-to-one.
			r.base = d.Parent.base
		}
	}
	for i := range r.Deps {
		if d := &r.Deps[i]; d.Kind != abi.DepShuffle && d.Parent.hasText {
			r.hasText = true
		}
	}
}
