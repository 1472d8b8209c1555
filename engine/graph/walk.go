package graph

import (
	"slices"
	"sort"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Reads returns the shuffles that a stage which ends in this RDD reads: those
// reached from it through narrow dependencies, each once, in the order of the
// dependencies, depth first. It is nil for an unknown RDD.
func (g *Graph) Reads(id msg.RDDID) []*Shuffle {
	r := g.rdds[id]
	if r == nil {
		return nil
	}
	b := r.base
	if !b.readsKnown {
		b.reads, b.readsKnown = b.findReads(), true
	}
	return b.reads
}

func (r *RDD) findReads() []*Shuffle {
	var reads []*Shuffle
	seen := make(map[*Shuffle]struct{})
	add := func(s *Shuffle) {
		if _, ok := seen[s]; !ok {
			seen[s] = struct{}{}
			reads = append(reads, s)
		}
	}
	// A Dep on the stack is still to be followed.
	stack := make([]*Dep, 0, len(r.Deps))
	push := func(deps []Dep) {
		for i := len(deps) - 1; i >= 0; i-- {
			stack = append(stack, &deps[i])
		}
	}
	visited := make(map[*RDD]struct{})
	push(r.Deps)
	for len(stack) > 0 {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if d.Kind == abi.DepShuffle {
			add(d.Shuffle)
			continue
		}
		b := d.Parent.base
		if _, ok := visited[b]; ok {
			continue
		}
		visited[b] = struct{}{}
		if b.readsKnown {
			for _, s := range b.reads {
				add(s)
			}
			continue
		}
		push(b.Deps)
	}
	return slices.Clip(reads)
}

// TextInputs returns the partitions of text sources that a task reads which
// computes one partition of this RDD: those reached through narrow
// dependencies, each once, in the order of the dependencies. It is nil if there
// are none, or no such RDD or partition. The pieces belong to the graph and
// must not be changed.
func (g *Graph) TextInputs(id msg.RDDID, partition int) []msg.TextInput {
	r := g.rdds[id]
	if r == nil || !r.hasText || partition < 0 || partition >= r.Partitions {
		return nil
	}
	type node struct {
		rdd       *RDD
		partition int
	}
	var (
		inputs []msg.TextInput
		stack  []node
		seen   map[node]struct{} // from the first branch on
	)
	at := node{r, partition}
	for {
		at.rdd = at.rdd.base
		before := len(stack)
		switch b := at.rdd; {
		case b.Text != nil:
			inputs = append(inputs, msg.TextInput{RDD: b.ID, Partition: at.partition, Pieces: b.Text[at.partition]})
		case !b.hasText:
		case b.union:
			// The last dependency that starts at or before the partition. Empty
			// parents start where the next one does, so it is not one of them.
			i := sort.Search(len(b.Deps), func(i int) bool { return b.Deps[i].Start > at.partition }) - 1
			stack = append(stack, node{b.Deps[i].Parent, at.partition - b.Deps[i].Start})
		default:
			for i := len(b.Deps) - 1; i >= 0; i-- {
				switch d := &b.Deps[i]; d.Kind {
				case abi.DepOneToOne:
					stack = append(stack, node{d.Parent, at.partition})
				case abi.DepCoalesce:
					from, to := coalesced(at.partition, b.Partitions, d.Parent.Partitions)
					for p := to - 1; p >= from; p-- {
						stack = append(stack, node{d.Parent, p})
					}
				}
			}
		}
		if seen == nil && len(stack)-before > 1 {
			seen = make(map[node]struct{})
		}
		for {
			if len(stack) == 0 {
				return inputs
			}
			at = stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen == nil {
				break
			}
			k := node{at.rdd.base, at.partition}
			if _, ok := seen[k]; !ok {
				seen[k] = struct{}{}
				break
			}
		}
	}
}

// coalesced returns the parent's partitions [from, to) of m that partition i of
// n reads.
func coalesced(i, n, m int) (from, to int) {
	return int(int64(i) * int64(m) / int64(n)), int((int64(i) + 1) * int64(m) / int64(n))
}
