//go:build !wasip1

package quern

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/abi"
)

// evaluator keeps what a job has defined and computed, and its context's
// settings. The holder of native.calls owns it.
type evaluator struct {
	run      func(kind abi.TaskKind, id uint32, partition uint32) int64
	rdds     map[uint32]*nativeRDD
	shuffles map[uint32]*nativeShuffle
	jobs     map[int64]*nativeJob // that are open, by handle
	handles  int64                // given out so far

	// What follows is set by open.

	conf              map[string]string // nil before
	seed              uint64
	maxPartitionBytes int64 // that partitions of text aim at
	// jobCount and stageCount number the context's jobs and stages from 0, in the
	// order in which they begin.
	jobCount, stageCount int
}

// nativeRDD is an RDD's lineage.
type nativeRDD struct {
	desc       abi.RDDDesc
	partitions int
	deps       []nativeDep
	text       [][]textPiece // by partition; nil if it is no text source
}

type nativeDep struct {
	parent  *nativeRDD
	shuffle *nativeShuffle // nil if the dependency is narrow
}

// nativeDefaults are what a job finds when it sets nothing.
var nativeDefaults = map[string]string{
	"quern.default.parallelism":     "8",
	"quern.files.maxPartitionBytes": "16m",
	"quern.seed":                    "0",
}

// newEvaluator makes an evaluator whose tasks are executed by run.
func newEvaluator(run func(abi.TaskKind, uint32, uint32) int64) *evaluator {
	return &evaluator{
		run:      run,
		rdds:     map[uint32]*nativeRDD{},
		shuffles: map[uint32]*nativeShuffle{},
		jobs:     map[int64]*nativeJob{},
	}
}

// open begins a context. RDDs of the one before still work: they are computed
// with the new settings, and their shuffles anew, so that a long series of
// contexts does not fill the memory.
func (e *evaluator) open(d *abi.ContextDesc) error {
	if d.Version != abi.Version {
		return &nativeError{abi.ErrVersion,
			fmt.Sprintf("context: the SDK speaks ABI version %d and the evaluator %d", d.Version, abi.Version)}
	}
	conf := maps.Clone(nativeDefaults)
	if d.AppName != "" {
		conf["quern.app.name"] = d.AppName
	}
	for _, key := range slices.Sorted(maps.Keys(d.Conf)) {
		if !strings.HasPrefix(key, "quern.") {
			return fmt.Errorf("configuration: unknown key %q: keys begin with %q", key, "quern.")
		}
		conf[key] = d.Conf[key]
	}
	seed, err := strconv.ParseUint(conf["quern.seed"], 10, 64)
	if err != nil {
		return fmt.Errorf("configuration: quern.seed is %q: it must be a number from 0 to 2^64-1", conf["quern.seed"])
	}
	size, err := parseSize(conf["quern.files.maxPartitionBytes"])
	if err != nil {
		return fmt.Errorf("configuration: quern.files.maxPartitionBytes: %w", err)
	}
	for _, s := range e.shuffles {
		s.drop()
		s.stage = nil // its number is of the old context
	}
	e.conf, e.seed, e.maxPartitionBytes = conf, seed, size
	e.jobCount, e.stageCount = 0, 0
	return nil
}

// parseSize reads a positive number of bytes, or of units k, m, g or t.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(strings.ToLower(s), "kmgt")
	unit := strings.ToLower(s[len(digits):])
	shift := 10 * (strings.Index("kmgt", unit) + min(len(unit), 1))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(unit) > 1 || n < 1 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is no size: write a positive number of bytes, or one with k, m, g or t, such as 32m", s)
	}
	return n << shift, nil
}

// define records an RDD and answers its number of partitions. Who defines it says
// which operation it is.
func (e *evaluator) define(d *abi.RDDDesc) (n int, err error) {
	var text [][]textPiece
	if d.Text != nil && len(d.Deps) == 0 {
		if text, err = planText(d.Text, e.maxPartitionBytes); err != nil {
			return 0, err
		}
	}
	if n, err = e.defineChecked(d, text); err != nil {
		return 0, fmt.Errorf("define RDD %d: %w", d.ID, err)
	}
	return n, nil
}

func (e *evaluator) defineChecked(d *abi.RDDDesc, text [][]textPiece) (int, error) {
	switch {
	case d.ID == 0:
		return 0, badArgument("RDDs are numbered from 1")
	case e.rdds[d.ID] != nil:
		return 0, badArgument("the number is taken by another RDD%s", e.rdds[d.ID].where())
	case d.Partitions < 0:
		return 0, badArgument("%d partitions", d.Partitions)
	case d.Text != nil && len(d.Deps) > 0:
		return 0, badArgument("a text source cannot depend on other RDDs")
	}
	r := &nativeRDD{desc: *d, partitions: d.Partitions}
	known := d.Partitions > 0 // whether r.partitions is
	agree := func(n int) error {
		if known && n != r.partitions {
			return badArgument("it has %d partitions by one account and %d by another", r.partitions, n)
		}
		r.partitions, known = n, true
		return nil
	}
	if d.Text != nil {
		if err := agree(len(text)); err != nil {
			return 0, err
		}
		r.text = text
	}
	ranges, next := 0, 0
	fresh := map[uint32]*nativeShuffle{} // described here first
	for _, dep := range d.Deps {
		parent := e.rdds[dep.Parent]
		if parent == nil {
			return 0, badArgument("there is no RDD %d to depend on", dep.Parent)
		}
		var err error
		nd := nativeDep{parent: parent}
		switch dep.Kind {
		case abi.DepOneToOne:
			err = agree(parent.partitions)
		case abi.DepRange:
			if dep.Start != next {
				return 0, badArgument("a range starts at partition %d, the one before it ends at %d", dep.Start, next)
			}
			ranges++
			next += parent.partitions
		case abi.DepCoalesce:
			if d.Partitions == 0 && parent.partitions > 0 {
				return 0, badArgument("no number of partitions to coalesce to")
			}
		case abi.DepShuffle:
			if nd.shuffle, err = e.shuffle(dep.Shuffle, parent, fresh); err == nil {
				err = agree(nd.shuffle.desc.Partitions)
			}
		default:
			err = badArgument("unknown kind of dependency %d", dep.Kind)
		}
		if err != nil {
			return 0, err
		}
		r.deps = append(r.deps, nd)
	}
	if ranges > 0 {
		if ranges < len(d.Deps) {
			return 0, badArgument("ranges among dependencies of other kinds")
		}
		if err := agree(next); err != nil {
			return 0, err
		}
	}
	e.rdds[d.ID] = r
	maps.Copy(e.shuffles, fresh)
	return r.partitions, nil
}

// shuffle is the shuffle that d describes: one that exists, if it is described
// again for the same parent, or a new one, which is added to fresh.
func (e *evaluator) shuffle(d *abi.ShuffleDesc, parent *nativeRDD, fresh map[uint32]*nativeShuffle) (*nativeShuffle, error) {
	if d == nil {
		return nil, badArgument("a shuffle dependency without a shuffle")
	}
	for _, known := range []map[uint32]*nativeShuffle{e.shuffles, fresh} {
		if s := known[d.ID]; s != nil {
			if s.parent != parent {
				return nil, badArgument("shuffle %d is of RDD %d already", d.ID, s.parent.desc.ID)
			}
			return s, nil
		}
	}
	switch {
	case d.ID == 0:
		return nil, badArgument("shuffles are numbered from 1")
	case d.Partitions < 1:
		return nil, badArgument("a shuffle into %d partitions", d.Partitions)
	case d.Partitioner < abi.PartitionHash || d.Partitioner > abi.PartitionGiven:
		return nil, badArgument("unknown kind of partitioner %d", d.Partitioner)
	case len(d.Bounds) > d.Partitions-1:
		return nil, badArgument("%d bounds for %d partitions", len(d.Bounds), d.Partitions)
	case !slices.IsSortedFunc(d.Bounds, bytes.Compare):
		return nil, badArgument("the bounds of a range partitioner do not ascend")
	}
	fresh[d.ID] = &nativeShuffle{desc: *d, parent: parent}
	return fresh[d.ID], nil
}

func (r *nativeRDD) where() string { return where(r.desc.Name, r.desc.CallSite) }

// where gives " (map at main.go:9)" or as much of it as is known.
func where(name, callSite string) string {
	switch {
	case name == "" && callSite == "":
		return ""
	case name == "":
		return " (at " + callSite + ")"
	case callSite == "":
		return " (" + name + ")"
	}
	return " (" + name + " at " + callSite + ")"
}

// inputs lists the shuffles that a stage ending at r reads, in the order of the
// lineage, each once. It does not look behind them.
func (r *nativeRDD) inputs() []*nativeShuffle {
	var found []*nativeShuffle
	seen := map[*nativeRDD]bool{}
	var walk func(r *nativeRDD)
	walk = func(r *nativeRDD) {
		if seen[r] {
			return
		}
		seen[r] = true
		for _, d := range r.deps {
			switch {
			case d.shuffle == nil:
				walk(d.parent)
			case !slices.Contains(found, d.shuffle):
				found = append(found, d.shuffle)
			}
		}
	}
	walk(r)
	return found
}
