package graph

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// modelReads finds what Reads should find, by plain recursion.
func modelReads(r *RDD, seen map[msg.ShuffleID]bool) []msg.ShuffleID {
	var reads []msg.ShuffleID
	for _, d := range r.Deps {
		if d.Kind != abi.DepShuffle {
			reads = append(reads, modelReads(d.Parent, seen)...)
		} else if !seen[d.Shuffle.ID] {
			seen[d.Shuffle.ID] = true
			reads = append(reads, d.Shuffle.ID)
		}
	}
	return reads
}

// modelText finds what TextInputs should find.
func modelText(r *RDD, partition int, seen map[string]bool) []string {
	if r.Text != nil {
		at := fmt.Sprintf("%d/%d", r.ID, partition)
		if seen[at] {
			return nil
		}
		seen[at] = true
		return []string{at}
	}
	var inputs []string
	for _, d := range r.Deps {
		for p := range d.Parent.Partitions {
			reads := false
			switch d.Kind {
			case abi.DepOneToOne:
				reads = p == partition
			case abi.DepRange:
				reads = d.Start+p == partition
			case abi.DepCoalesce:
				reads = partition*d.Parent.Partitions/r.Partitions <= p && p < (partition+1)*d.Parent.Partitions/r.Partitions
			}
			if reads {
				inputs = append(inputs, modelText(d.Parent, p, seen)...)
			}
		}
	}
	return inputs
}

// TestWalksFindWhatRecursionFinds defines lineages at random, asks at random
// times, so that some answers are known early, and compares with the model.
func TestWalksFindWhatRecursionFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := New()
		shuffles := uint32(0)
		for id := uint32(1); id <= uint32(rapid.IntRange(2, 12).Draw(t, "rdds")); id++ {
			d := abi.RDDDesc{ID: id}
			var text [][]msg.Piece
			parent := func() uint32 { return uint32(rapid.IntRange(1, int(id)-1).Draw(t, "parent")) }
			kinds := []string{"text", "source"}
			if id > 1 {
				kinds = []string{"map", "map", "text", "union", "union of one", "coalesce", "shuffle", "join", "zip"}
			}
			switch rapid.SampledFrom(kinds).Draw(t, "kind") {
			case "text":
				d.Text = &abi.TextDesc{}
				for range rapid.IntRange(0, 4).Draw(t, "partitions") {
					text = append(text, []msg.Piece{{Path: fmt.Sprint("/", id)}})
				}
			case "source":
				d.Partitions = rapid.IntRange(0, 4).Draw(t, "partitions")
			case "map":
				d.Deps = []abi.DepDesc{oneToOne(parent())}
			case "union":
				start := 0
				for range rapid.IntRange(2, 4).Draw(t, "parents") {
					p := parent()
					d.Deps = append(d.Deps, ranged(p, start))
					start += g.RDD(msg.RDDID(p)).Partitions
				}
			case "union of one":
				d.Deps = []abi.DepDesc{ranged(parent(), 0)}
			case "coalesce":
				d.Deps = []abi.DepDesc{coalesce(parent())}
				d.Partitions = rapid.IntRange(1, 6).Draw(t, "partitions")
			case "shuffle":
				shuffles++
				d.Deps = []abi.DepDesc{hashed(shuffles, parent(), rapid.IntRange(1, 4).Draw(t, "partitions"))}
			case "join":
				p := parent()
				if n := g.RDD(msg.RDDID(p)).Partitions; n > 0 {
					shuffles++
					d.Deps = []abi.DepDesc{oneToOne(p), hashed(shuffles, parent(), n)}
				}
			case "zip":
				p := parent()
				d.Deps = []abi.DepDesc{oneToOne(p), oneToOne(p)}
			}
			n, err := g.Define(d, text)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "ask") || id%2 == 0 {
				checkWalks(t, g, msg.RDDID(id), n)
			}
		}
		for id := range msg.RDDID(len(g.rdds)) {
			checkWalks(t, g, id+1, g.RDD(id+1).Partitions)
		}
	})
}

func checkWalks(t *rapid.T, g *Graph, id msg.RDDID, partitions int) {
	var reads []msg.ShuffleID
	for _, s := range g.Reads(id) {
		reads = append(reads, s.ID)
	}
	if diff := cmp.Diff(modelReads(g.RDD(id), make(map[msg.ShuffleID]bool)), reads); diff != "" {
		t.Errorf("RDD %d reads (-want +got):\n%s", id, diff)
	}
	for p := range partitions {
		var inputs []string
		for _, in := range g.TextInputs(id, p) {
			inputs = append(inputs, fmt.Sprintf("%d/%d", in.RDD, in.Partition))
			if want := g.RDD(in.RDD).Text[in.Partition]; &want[0] != &in.Pieces[0] {
				t.Errorf("RDD %d, partition %d: pieces of another partition than %d/%d", id, p, in.RDD, in.Partition)
			}
		}
		if diff := cmp.Diff(modelText(g.RDD(id), p, make(map[string]bool)), inputs); diff != "" {
			t.Errorf("text inputs of RDD %d, partition %d (-want +got):\n%s", id, p, diff)
		}
	}
	if in := g.TextInputs(id, partitions); in != nil {
		t.Errorf("RDD %d has text inputs %v beyond its last partition", id, in)
	}
}

// TestLongLineages asks at each step of lineages that are far too long for
// walks over all of it, for recursion, or for following every path.
func TestLongLineages(t *testing.T) {
	for name, step := range map[string]func(uint32) []abi.DepDesc{
		"maps":          func(p uint32) []abi.DepDesc { return []abi.DepDesc{oneToOne(p)} },
		"unions of one": func(p uint32) []abi.DepDesc { return []abi.DepDesc{ranged(p, 0)} },
		"coalesces":     func(p uint32) []abi.DepDesc { return []abi.DepDesc{coalesce(p)} },
	} {
		g := graphOf(t)
		const steps = 200_000
		id := uint32(1)
		for i := range uint32(steps) {
			if _, err := g.Define(abi.RDDDesc{ID: 10 + i, Partitions: 3, Deps: step(id)}, nil); err != nil {
				t.Fatal(err)
			}
			id = 10 + i
			if in := g.TextInputs(msg.RDDID(id), 2); len(in) != 1 || in[0].RDD != 1 || in[0].Partition != 2 {
				t.Fatalf("%s, step %d: text inputs %v", name, i, in)
			}
			if reads := g.Reads(msg.RDDID(id)); len(reads) != 0 {
				t.Fatalf("%s, step %d: reads %v", name, i, reads)
			}
		}
	}
}

func TestPathsThatMeetAgainAreFollowedOnce(t *testing.T) {
	g := graphOf(t)
	id := uint32(4)
	for i := range uint32(100) { // 2^100 paths
		if _, err := g.Define(abi.RDDDesc{ID: 10 + i, Deps: []abi.DepDesc{oneToOne(id), oneToOne(id)}}, nil); err != nil {
			t.Fatal(err)
		}
		id = 10 + i
	}
	if reads := g.Reads(msg.RDDID(id)); len(reads) != 1 || reads[0].ID != 1 {
		t.Errorf("reads %v", reads)
	}
	id = 1
	for i := range uint32(100) {
		if _, err := g.Define(abi.RDDDesc{ID: 200 + i, Deps: []abi.DepDesc{oneToOne(id), oneToOne(id)}}, nil); err != nil {
			t.Fatal(err)
		}
		id = 200 + i
	}
	if in := g.TextInputs(msg.RDDID(id), 1); len(in) != 1 || in[0].Partition != 1 {
		t.Errorf("text inputs %v", in)
	}
}

// BenchmarkTextInputs is what the driver pays for each task of a stage on text.
func BenchmarkTextInputs(b *testing.B) {
	g := graphOf(b)
	if _, err := g.Define(abi.RDDDesc{ID: 9, Deps: []abi.DepDesc{oneToOne(1)}}, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.TextInputs(9, 1)
	}
}
