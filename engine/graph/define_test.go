package graph

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

func oneToOne(parent uint32) abi.DepDesc { return abi.DepDesc{Parent: parent, Kind: abi.DepOneToOne} }

func ranged(parent uint32, start int) abi.DepDesc {
	return abi.DepDesc{Parent: parent, Kind: abi.DepRange, Start: start}
}

func coalesce(parent uint32) abi.DepDesc { return abi.DepDesc{Parent: parent, Kind: abi.DepCoalesce} }

func hashed(shuffle, parent uint32, partitions int) abi.DepDesc {
	return abi.DepDesc{Parent: parent, Kind: abi.DepShuffle, Shuffle: &abi.ShuffleDesc{
		ID: shuffle, Partitioner: abi.PartitionHash, Partitions: partitions,
	}}
}

// bounded is a dependency through a shuffle by ranges.
func bounded(shuffle, parent uint32, partitions int, bounds ...string) abi.DepDesc {
	d := hashed(shuffle, parent, partitions)
	d.Shuffle.Partitioner = abi.PartitionRange
	for _, b := range bounds {
		d.Shuffle.Bounds = append(d.Shuffle.Bounds, []byte(b))
	}
	return d
}

// graphOf defines RDDs 1 (text, 3 partitions), 2 (5 partitions), 3 (none) and 4
// (the text through shuffle 1 into 3 partitions).
func graphOf(t testing.TB) *Graph {
	t.Helper()
	g := New()
	for _, d := range []abi.RDDDesc{
		{ID: 1, Name: "textFile", CallSite: "main.go:9", Text: &abi.TextDesc{Paths: []string{"in"}}},
		{ID: 2, Name: "parallelize", Partitions: 5},
		{ID: 3},
		{ID: 4, Name: "groupByKey", Deps: []abi.DepDesc{hashed(1, 1, 3)}},
	} {
		var text [][]msg.Piece
		if d.Text != nil {
			text = [][]msg.Piece{{{Path: "/a", Length: 1}}, {{Path: "/b", Length: 2}}, {{Path: "/c", Length: 3}}}
		}
		if _, err := g.Define(d, text); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestDefineCountsPartitions(t *testing.T) {
	for name, c := range map[string]struct {
		given int
		deps  []abi.DepDesc
		want  int
	}{
		"a source":                          {4, nil, 4},
		"an empty source":                   {0, nil, 0},
		"one to one":                        {0, []abi.DepDesc{oneToOne(2)}, 5},
		"one to one, given":                 {5, []abi.DepDesc{oneToOne(2)}, 5},
		"one to one of nothing":             {0, []abi.DepDesc{oneToOne(3)}, 0},
		"a union":                           {0, []abi.DepDesc{ranged(1, 0), ranged(3, 3), ranged(2, 3), ranged(3, 8)}, 8},
		"a union of one":                    {5, []abi.DepDesc{ranged(2, 0)}, 5},
		"fewer":                             {2, []abi.DepDesc{coalesce(2)}, 2},
		"more":                              {7, []abi.DepDesc{coalesce(2)}, 7},
		"fewer of nothing":                  {0, []abi.DepDesc{coalesce(3)}, 0},
		"a shuffle":                         {0, []abi.DepDesc{hashed(2, 2, 9)}, 9},
		"a shuffle of nothing":              {0, []abi.DepDesc{hashed(2, 3, 9)}, 9},
		"a shuffle by ranges":               {0, []abi.DepDesc{bounded(2, 2, 4, "a", "b", "b")}, 4},
		"a shuffle with fewer bounds":       {0, []abi.DepDesc{bounded(2, 2, 4, "")}, 4},
		"a shuffle that is known":           {0, []abi.DepDesc{hashed(1, 1, 3)}, 3},
		"a join":                            {0, []abi.DepDesc{hashed(2, 2, 3), hashed(3, 1, 3)}, 3},
		"a join with itself":                {0, []abi.DepDesc{hashed(2, 2, 3), hashed(2, 2, 3)}, 3},
		"a join with what is there":         {0, []abi.DepDesc{oneToOne(4), hashed(3, 2, 3)}, 3},
		"a derived number beside coalesced": {0, []abi.DepDesc{coalesce(2), oneToOne(4)}, 3},
	} {
		g := graphOf(t)
		got, err := g.Define(abi.RDDDesc{ID: 9, Partitions: c.given, Deps: c.deps}, nil)
		if err != nil || got != c.want {
			t.Errorf("%s: %d partitions, %v; want %d", name, got, err, c.want)
		}
		if n, ok := g.NumPartitions(9); n != c.want || !ok {
			t.Errorf("%s: NumPartitions = %d, %t", name, n, ok)
		}
	}
}

func TestDefineRefusesWhatDoesNotFit(t *testing.T) {
	of := func(deps ...abi.DepDesc) abi.RDDDesc { return abi.RDDDesc{ID: 9, Deps: deps} }
	given := func(n int, deps ...abi.DepDesc) abi.RDDDesc { return abi.RDDDesc{ID: 9, Partitions: n, Deps: deps} }
	change := func(d abi.DepDesc, f func(*abi.ShuffleDesc)) abi.DepDesc { f(d.Shuffle); return d }
	text := func(n int, deps ...abi.DepDesc) abi.RDDDesc {
		return abi.RDDDesc{ID: 9, Partitions: n, Deps: deps, Text: &abi.TextDesc{}}
	}
	piece := [][]msg.Piece{{{Path: "/a"}}}
	for _, c := range []struct {
		d    abi.RDDDesc
		text [][]msg.Piece
		want string // a part of the error
	}{
		{abi.RDDDesc{}, nil, "define RDD 0: RDDs are numbered from 1"},
		{abi.RDDDesc{ID: 1, Name: "map"}, nil,
			"define RDD 1 (map): the number is taken by another RDD (textFile at main.go:9)"},
		{abi.RDDDesc{ID: 9, Name: "map", CallSite: "x.go:1", Deps: []abi.DepDesc{oneToOne(10)}}, nil,
			"define RDD 9 (map at x.go:1): dependency 0: there is no RDD 10"},
		{of(oneToOne(9)), nil, "there is no RDD 9"},
		{of(oneToOne(0)), nil, "there is no RDD 0"},
		{abi.RDDDesc{ID: 9, Name: strings.Repeat("x", MaxText+1)}, nil, "...): the name is 4097 bytes long"},
		{abi.RDDDesc{ID: 9, CallSite: strings.Repeat("x", MaxText+1)}, nil, "...): the call site is 4097 bytes long"},
		{abi.RDDDesc{ID: 9, Deps: make([]abi.DepDesc, MaxDeps+1)}, nil, "1048577 dependencies, at most 1048576"},
		{given(-1), nil, "-1 partitions: the number must be from 0 to 4194304"},
		{given(MaxPartitions + 1), nil, "4194305 partitions"},
		{of(abi.DepDesc{Parent: 2}), nil, "unknown kind 0"},
		{of(abi.DepDesc{Parent: 2, Kind: 5}), nil, "dependency 0 on RDD 2: unknown kind 5"},

		{text(0), make([][]msg.Piece, MaxPartitions+1), "4194305 partitions"},
		{text(2), piece, "2 partitions were asked for, but the text has 1"},
		{text(0, oneToOne(1)), piece, "a text source cannot depend on other RDDs"},
		{given(1), piece, "not a text source"},

		{given(4, oneToOne(2)), nil, "dependency 0 on RDD 2 has 5 partitions, the RDD has 4"},
		{of(oneToOne(2), oneToOne(1)), nil, "dependency 1 on RDD 1 has 3 partitions, the RDD has 5"},
		{of(oneToOne(3), oneToOne(1)), nil, "dependency 1 on RDD 1 has 3 partitions, the RDD has 0"},
		{of(oneToOne(2), hashed(2, 1, 4)), nil, "has 4 partitions, the RDD has 5"},
		{of(coalesce(2)), nil, "no number of partitions to coalesce to"},

		{of(ranged(2, 1)), nil, "starts at partition 1, the one before it ends at 0"},
		{of(ranged(2, -1)), nil, "starts at partition -1"},
		{of(ranged(2, 0), ranged(1, 4)), nil, "starts at partition 4, the one before it ends at 5"},
		{of(ranged(2, 0), ranged(1, 6)), nil, "starts at partition 6, the one before it ends at 5"},
		{given(7, ranged(2, 0), ranged(1, 5)), nil, "cover 8 partitions, the RDD has 7"},
		{of(ranged(2, 0), oneToOne(2)), nil, "is of kind 1 among ranges"},
		{of(abi.DepDesc{Parent: 2, Kind: abi.DepOneToOne, Start: 1}), nil, "start 1 is given"},

		{of(abi.DepDesc{Parent: 2, Kind: abi.DepShuffle}), nil, "a shuffle dependency without a shuffle"},
		{of(abi.DepDesc{Parent: 2, Kind: abi.DepOneToOne, Shuffle: &abi.ShuffleDesc{}}), nil, "its kind is 1"},
		{of(hashed(0, 2, 1)), nil, "shuffles are numbered from 1"},
		{of(hashed(2, 2, 0)), nil, "shuffle 2: 0 partitions: the number must be from 1"},
		{of(hashed(2, 2, MaxPartitions+1)), nil, "4194305 partitions"},
		{given(4, hashed(2, 2, 3)), nil, "has 3 partitions, the RDD has 4"},
		{of(hashed(2, 2, 3), hashed(3, 2, 4)), nil, "dependency 1 on RDD 2 has 4 partitions, the RDD has 3"},
		{of(change(hashed(2, 2, 3), func(d *abi.ShuffleDesc) { d.Partitioner = 4 })), nil, "unknown partitioner 4"},
		{of(change(bounded(2, 2, 3, "a"), func(d *abi.ShuffleDesc) { d.Partitioner = abi.PartitionGiven })), nil,
			"bounds are for range partitioning only"},
		{of(bounded(2, 2, 2, "a", "b")), nil, "2 bounds for 2 partitions: at most 1"},
		{of(bounded(2, 2, 3, "b", "a")), nil, "bound 1 is smaller than the one before it"},
		{of(bounded(2, 2, 3, "", strings.Repeat("x", MaxBounds+1))), nil, "the bounds are longer than"},
		{of(hashed(1, 2, 3)), nil, "shuffle 1 is of RDD 1 already"},
		{of(hashed(1, 1, 4)), nil, "shuffle 1 was described differently before"},
		{of(change(hashed(1, 1, 3), func(d *abi.ShuffleDesc) { d.Sorted = true })), nil, "described differently"},
		{of(hashed(2, 1, 3), hashed(2, 2, 3)), nil, "shuffle 2 is of RDD 1 already"},
		{of(bounded(2, 2, 3, "a"), bounded(2, 2, 3, "b")), nil, "shuffle 2 was described differently before"},
	} {
		g := graphOf(t)
		rdds, shuffles := len(g.rdds), len(g.shuffles)
		_, err := g.Define(c.d, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v\nwant %s", err, c.want)
		}
		if len(g.rdds) != rdds || len(g.shuffles) != shuffles {
			t.Errorf("%v: but something was added", err)
		}
	}
}

func TestUnionsDoNotGrowWithoutLimit(t *testing.T) {
	g := graphOf(t)
	if _, err := g.Define(abi.RDDDesc{ID: 10, Partitions: MaxPartitions}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := g.Define(abi.RDDDesc{ID: 11, Deps: []abi.DepDesc{ranged(10, 0), ranged(2, MaxPartitions)}}, nil)
	if err == nil || !strings.Contains(err.Error(), "4194309 partitions") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNotDefinedIsNotFound(t *testing.T) {
	g := graphOf(t)
	if g.RDD(9) != nil || g.Shuffle(9) != nil || g.Reads(9) != nil || g.TextInputs(9, 0) != nil {
		t.Error("something is known of RDD or shuffle 9")
	}
	if n, ok := g.NumPartitions(9); n != 0 || ok {
		t.Errorf("NumPartitions = %d, %t", n, ok)
	}
	if g.RDD(4).Deps[0].Shuffle != g.Shuffle(1) || g.Shuffle(1).Parent != g.RDD(1) {
		t.Error("RDD 4 does not read shuffle 1 of RDD 1")
	}
}

// FuzzDefine defines whatever RDDs the bytes describe: there is an error or an
// RDD that can be walked.
func FuzzDefine(f *testing.F) {
	for _, deps := range [][]abi.DepDesc{
		{oneToOne(2)}, {ranged(1, 0), ranged(2, 3)}, {coalesce(2)}, {hashed(2, 2, 3)},
		{bounded(2, 2, 3, "a", "b")}, {oneToOne(4), hashed(3, 2, 3)},
	} {
		d := abi.RDDDesc{ID: 9, Name: "op", Deps: deps, Partitions: 3}
		f.Add(d.AppendCBOR(nil))
		second := abi.RDDDesc{ID: 10, Deps: []abi.DepDesc{oneToOne(9)}}
		f.Add(second.AppendCBOR(d.AppendCBOR(nil)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := graphOf(t)
		for dec := cbor.NewDecoder(bytes.NewReader(data)); ; {
			var d abi.RDDDesc
			if dec.Decode(&d) != nil {
				return
			}
			var text [][]msg.Piece
			if d.Text != nil {
				text = make([][]msg.Piece, len(d.Text.Paths))
			}
			n, err := g.Define(d, text)
			if err != nil {
				continue
			}
			if n < 0 || n > MaxPartitions {
				t.Fatalf("%d partitions of %+v", n, d)
			}
			id := msg.RDDID(d.ID)
			for _, s := range g.Reads(id) {
				if s.Desc.Partitions < 1 || s.Parent == nil {
					t.Fatalf("RDD %+v reads %+v", d, s)
				}
			}
			for _, p := range []int{-1, 0, n / 2, n - 1, n} {
				for _, in := range g.TextInputs(id, p) {
					if src := g.RDD(in.RDD); src == nil || src.Text == nil || in.Partition >= src.Partitions {
						t.Fatalf("partition %d of %+v reads %+v", p, d, in)
					}
				}
			}
		}
	})
}
