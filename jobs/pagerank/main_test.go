package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/quern"
)

func newContext(t testing.TB) *quern.Context {
	t.Helper()
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

type link = quern.Pair[page, page]

// ranked are all ranks as the job computes them.
func ranked(t testing.TB, links []link, parts, iterations int, damping float64) map[page]float64 {
	t.Helper()
	ranks, err := rank(quern.AsPairs(newContext(t).Parallelize(links, parts)), iterations, damping)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ranks.CollectAsMap()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// multiplied are all ranks computed with the matrix of the surfer's chances.
func multiplied(links []link, iterations int, damping float64) map[page]float64 {
	var pages []page
	for _, l := range links {
		pages = append(pages, l.Key, l.Value)
	}
	slices.Sort(pages)
	pages = slices.Compact(pages)
	n := len(pages)
	chance := make([][]float64, n) // from, to
	for i, p := range pages {
		chance[i] = make([]float64, n)
		targets := map[page]bool{}
		for _, l := range links {
			if l.Key == p {
				targets[l.Value] = true
			}
		}
		for j, q := range pages {
			switch {
			case len(targets) == 0:
				chance[i][j] = 1 / float64(n)
			case targets[q]:
				chance[i][j] = damping/float64(len(targets)) + (1-damping)/float64(n)
			default:
				chance[i][j] = (1 - damping) / float64(n)
			}
		}
	}
	row := make([]float64, n)
	for i := range row {
		row[i] = 1 / float64(n)
	}
	for range iterations {
		next := make([]float64, n)
		for j := range next {
			for i := range row {
				next[j] += row[i] * chance[i][j]
			}
		}
		row = next
	}
	ranks := map[page]float64{}
	for i, p := range pages {
		ranks[p] = row[i]
	}
	return ranks
}

var nearly = cmpopts.EquateApprox(1e-9, 1e-15)

func TestRanksAreThoseOfTheMatrix(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.Int64Range(-3, 8)
		links := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) link {
			return link{Key: number.Draw(r, "from"), Value: number.Draw(r, "to")}
		}), 0, 30).Draw(r, "links")
		parts := rapid.IntRange(1, 5).Draw(r, "parts")
		iterations := rapid.IntRange(0, 4).Draw(r, "iterations")
		damping := rapid.SampledFrom([]float64{0, 0.5, 0.85, 1}).Draw(r, "damping")
		want := multiplied(links, iterations, damping)
		got := ranked(t, links, parts, iterations, damping)
		if diff := gocmp.Diff(want, got, nearly); diff != "" {
			r.Errorf("ranks (-want +got):\n%s", diff)
		}
	})
}

func TestRanksAddUpToOne(t *testing.T) {
	var links []link
	for p := range page(200) {
		links = append(links, randomLinks(200)(p)...)
	}
	sum := 0.0
	for _, r := range ranked(t, links, 8, 10, 0.85) {
		sum += r
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the ranks add up to %v, want 1", sum)
	}
}

func TestTheTopTenArePrinted(t *testing.T) {
	var links []link
	var text strings.Builder
	text.WriteString("# a graph of the test\r\n#from\tto\n\n")
	for p := range page(100) {
		for _, l := range randomLinks(100)(p) {
			links = append(links, l, l)
			fmt.Fprintf(&text, "%d\t%d\n %[1]d  %[2]d \r\n", l.Key, l.Value)
		}
	}
	path := filepath.Join(t.TempDir(), "links.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}

	ranks := multiplied(links, 3, 0.85)
	pages := make([]page, 0, len(ranks))
	for p := range ranks {
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b page) int { return cmp.Or(cmp.Compare(ranks[b], ranks[a]), cmp.Compare(a, b)) })
	var want strings.Builder
	for _, p := range pages[:10] {
		fmt.Fprintf(&want, "%.9f %d\n", ranks[p], p)
	}

	for _, o := range []options{{path: path}, {generate: 100}} {
		o.iterations, o.damping = 3, 0.85
		var got strings.Builder
		if err := run(newContext(t), o, &got); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("output with %+v (-want +got):\n%s", o, diff)
		}
	}
}

func TestFilesWithoutLinksHaveNoPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.txt")
	if err := os.WriteFile(path, []byte("# nothing\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := run(newContext(t), options{path: path, iterations: 3, damping: 0.85}, &got); err != nil || got.Len() > 0 {
		t.Errorf("the output is %q, the error %v; want neither", got.String(), err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"1 2 3", `line "1 2 3" has 3 fields, not the 2 pages of a link`},
		{"1", `line "1" has 1 fields`},
		{"1 two", `line "1 two": "two" is not a page's number`},
		{"99999999999999999999 2", "is not a page's number"},
	} {
		path := filepath.Join(t.TempDir(), "links.txt")
		if err := os.WriteFile(path, []byte("1 2\n"+c.line+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		err := run(newContext(t), options{path: path, iterations: 1, damping: 0.85}, &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("line %q: the error is %v, want it to say %q", c.line, err, c.want)
		}
	}
	for _, o := range []options{
		{generate: 10, iterations: -1}, {generate: 10, damping: -0.1}, {generate: 10, damping: 1.1},
		{generate: 10, damping: math.NaN()}, {generate: -10},
	} {
		if err := run(newContext(t), o, &strings.Builder{}); err == nil {
			t.Errorf("%+v: there is no error", o)
		}
	}
}
