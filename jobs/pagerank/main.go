// Command pagerank ranks pages by the links between them and prints the ten with
// the highest ranks.
//
//	quern run jobs/pagerank [-iterations 10] [-damping 0.85] LINKS
//	quern run jobs/pagerank -gen 100000
//
// LINKS are text files with a line "from to" for each link, where pages are
// numbers; lines that begin with # are comments. That is how the SNAP collection
// writes graphs. A link that is there twice counts once. With -gen the job makes
// a random graph of so many pages, always the same one.
//
// A page's rank is the chance to find a surfer there who follows a random link of
// each page with the chance damping, and else goes to any page; so he does from a
// page without links, too.
//
// It shows a driver that loops: each round's closures capture what the last
// round's action has returned.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

type page = int64

// options are the command line.
type options struct {
	iterations int
	damping    float64
	generate   int64  // pages of a random graph
	path       string // of links, if none are generated
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("pagerank: ")
	var o options
	flag.IntVar(&o.iterations, "iterations", 10, "`number` of rounds")
	flag.Float64Var(&o.damping, "damping", 0.85, "`chance` that the surfer follows a link")
	flag.Int64Var(&o.generate, "gen", 0, "rank a random graph of this `number` of pages")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: pagerank [FLAGS] LINKS\n       pagerank [FLAGS] -gen PAGES")
		flag.PrintDefaults()
	}
	flag.Parse()
	if (o.generate == 0) != (flag.NArg() == 1) || flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.path = flag.Arg(0)
	ctx, err := quern.NewContext(quern.AppName("pagerank"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx *quern.Context, o options, out io.Writer) error {
	if o.iterations < 0 || !(o.damping >= 0 && o.damping <= 1) || o.generate < 0 {
		return errors.New("-iterations and -gen take numbers from 0 up, -damping one from 0 to 1")
	}
	var links quern.PairRDD[page, page]
	if o.path != "" {
		links = ctx.TextFile(o.path).Filter(hasLink).MapToPair(parse)
	} else {
		links = quern.AsPairs(ctx.Range(0, o.generate, 1).FlatMap(randomLinks(o.generate)))
	}
	ranks, err := rank(links, o.iterations, o.damping)
	if err != nil {
		return err
	}
	top, err := ranks.Top(10, func(a, b quern.Pair[page, float64]) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Key, a.Key))
	})
	for _, p := range top {
		fmt.Fprintf(out, "%.9f %d\n", p.Value, p.Key)
	}
	return err
}

// rank returns the ranks of all pages that a link comes from or goes to.
func rank(links quern.PairRDD[page, page], iterations int, damping float64) (quern.PairRDD[page, float64], error) {
	targets := targetsOf(links)
	count, err := targets.Count()
	pages := float64(count)
	ranks := targets.MapValues(func([]page) float64 { return 1 / pages })
	for i := 0; i < iterations && err == nil; i++ {
		// Both sides of the join are laid out alike, so that it moves nothing.
		arrived := quern.AsPairs(targets.Join(ranks, meet).FlatMap(follow)).
			ReduceByKey(func(a, b float64) float64 { return a + b })
		var sum float64
		sum, err = quern.Sum(arrived.Values())
		lost := 1 - sum // by surfers on pages without links
		ranks = arrived.MapValues(func(rank float64) float64 {
			return (1-damping)/pages + damping*(rank+lost/pages)
		})
	}
	return ranks, err
}

// targetsOf returns each page with the pages it has links to, in order.
func targetsOf(links quern.PairRDD[page, page]) quern.PairRDD[page, []page] {
	backwards := links.MapToPair(func(from, to page) (page, struct{}) { return to, struct{}{} })
	lists := links.CoGroup(backwards).
		MapGroups(func(p page, targets iter.Seq[page], _ iter.Seq[struct{}]) quern.Pair[page, []page] {
			return quern.Pair[page, []page]{Key: p, Value: slices.Compact(slices.Sorted(targets))}
		})
	// Shuffled once more, the lists are ready for all rounds to read.
	return quern.AsPairs(lists).PartitionBy(quern.HashPartitioner[page](max(1, links.NumPartitions())))
}

// surfers are on a page with the given chance.
type surfers struct {
	targets []page
	rank    float64
}

func meet(targets []page, rank float64) surfers { return surfers{targets, rank} }

// follow sends the surfers of a page along its links in equal parts.
func follow(p page, s surfers) []quern.Pair[page, float64] {
	arrivals := make([]quern.Pair[page, float64], 0, 1+len(s.targets))
	arrivals = append(arrivals, quern.Pair[page, float64]{Key: p}) // or pages without links to them would vanish
	for _, to := range s.targets {
		arrivals = append(arrivals, quern.Pair[page, float64]{Key: to, Value: s.rank / float64(len(s.targets))})
	}
	return arrivals
}

// hasLink says that a line is not blank and no comment.
func hasLink(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '#'
}

// parse reads a line. A task that meets a bad one fails, and the job with it,
// with this text.
func parse(line string) (from, to page) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		panic(fmt.Sprintf("line %q has %d fields, not the 2 pages of a link", line, len(fields)))
	}
	return number(line, fields[0]), number(line, fields[1])
}

func number(line, field string) page {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("line %q: %q is not a page's number", line, field))
	}
	return n
}

// randomLinks returns a function that makes the links of a page: up to 15, most
// of them to pages with small numbers, as on the web most go to few pages.
func randomLinks(pages int64) func(page) []quern.Pair[page, page] {
	return func(p page) []quern.Pair[page, page] {
		random := rand.New(rand.NewPCG(uint64(p), 0))
		links := make([]quern.Pair[page, page], random.IntN(16))
		for i := range links {
			x := random.Float64()
			links[i] = quern.Pair[page, page]{Key: p, Value: page(x * x * x * float64(pages))}
		}
		return links
	}
}
