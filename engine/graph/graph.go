// Package graph is the lineage of an application as the host sees it: which
// RDDs the driver has defined, how each reads its parents, and where shuffles
// cut between them. It holds descriptions, never closures or data; those stay
// in the guest's memory.
//
// The descriptions come from the guest, which is not trusted: [Graph.Define]
// refuses whatever does not fit together, so that the rest of the engine can
// walk the graph without checking again. A parent must be defined before its
// children, hence there are no cycles.
//
// An iterative job adds to its lineage for hours and runs an action at each
// step. So what a stage needs to know of an RDD is found without walking back
// over the whole of it: chains of one-to-one steps are jumped over, and answers
// are kept.
//
// A Graph belongs to one goroutine, also for reading: some answers are kept when
// they are first asked for. What it returns is immutable.
package graph

import (
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Graph is the lineage of one application.
type Graph struct {
	rdds     map[msg.RDDID]*RDD
	shuffles map[msg.ShuffleID]*Shuffle
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{
		rdds:     make(map[msg.RDDID]*RDD),
		shuffles: make(map[msg.ShuffleID]*Shuffle),
	}
}

// RDD is one node of the lineage. It is immutable once defined.
type RDD struct {
	ID         msg.RDDID
	Name       string // the operation, such as "map"; may be empty
	CallSite   string // the user's file:line; may be empty
	Partitions int    // >= 0
	Deps       []Dep  // in the order of the parents; none for a source
	// Text holds the pieces of each partition of a text source; nil for others.
	Text [][]msg.Piece

	// base is the RDD itself or its nearest ancestor with the same partitions
	// that is more than a one-to-one step: what the stage of this RDD reads is
	// what base reads, partition by partition.
	base *RDD
	// hasText says that base reaches a text source through narrow dependencies.
	hasText bool
	// union says that the dependencies are ranges, contiguous from 0.
	union bool
	// reads is kept on base RDDs, and valid if readsKnown.
	reads      []*Shuffle
	readsKnown bool
}

// Dep is one dependency of an RDD.
type Dep struct {
	Kind    abi.DepKind
	Parent  *RDD
	Start   int      // abi.DepRange: the first partition that reads Parent
	Shuffle *Shuffle // abi.DepShuffle
}

// Shuffle is a shuffle and the RDD whose partitions it distributes. It is
// immutable once defined.
type Shuffle struct {
	ID     msg.ShuffleID
	Desc   abi.ShuffleDesc
	Parent *RDD // the map side: one map task for each of its partitions
}

// RDD returns the RDD of that number, nil if there is none.
func (g *Graph) RDD(id msg.RDDID) *RDD { return g.rdds[id] }

// Shuffle returns the shuffle of that number, nil if there is none.
func (g *Graph) Shuffle(id msg.ShuffleID) *Shuffle { return g.shuffles[id] }

// NumPartitions returns the number of partitions of an RDD, and whether the RDD
// is defined.
func (g *Graph) NumPartitions(id msg.RDDID) (int, bool) {
	r := g.rdds[id]
	if r == nil {
		return 0, false
	}
	return r.Partitions, true
}
