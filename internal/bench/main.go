// Command bench measures Quern as its users see it, as whole commands, and
// prints a table of medians. What is compared with something else is run in
// turn with it, so that the ratio holds on a machine whose speed drifts.
//
//	go run ./internal/bench [-runs N] [-only REGEXP] [-sort BYTES]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	name   string
	value  string // median, with its unit
	spread string // least and most
	ratio  string // against what, if there is something
	peak   string // resident memory
}

// benchmark is one thing to measure. It answers rows or says what went wrong.
type benchmark struct {
	name string
	run  func(context.Context, *bench) ([]row, error)
}

func benchmarks() []benchmark {
	return []benchmark{
		{"start-up", startUp},
		{"tasks", emptyTasks},
		{"wordcount", wordCount},
		{"sort", sortRecords},
		{"join", join},
		{"pagerank", pageRank},
		{"sandbox", sandboxes},
	}
}

func main() {
	log.SetFlags(0)
	b := new(bench)
	flag.IntVar(&b.runs, "runs", 5, "how often each command is `run`")
	flag.Int64Var(&b.sortBytes, "sort", 1<<30, "how many `bytes` to sort")
	only := flag.String("only", "", "measure only what this `regexp` matches")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		log.Fatalf("-only: %v", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.prepare(ctx); err != nil {
		log.Fatal(err)
	}
	failed := b.measure(ctx, pattern)
	if err := os.RemoveAll(b.dir); err != nil {
		log.Print(err)
	}
	if failed {
		os.Exit(1)
	}
}

// measure runs what the pattern matches and prints the table.
func (b *bench) measure(ctx context.Context, pattern *regexp.Regexp) (failed bool) {
	fmt.Printf("%s/%s, %d cores, %s, medians of %d runs\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.runs)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "what\tmedian\tleast … most\tratio\tpeak memory")
	for _, m := range benchmarks() {
		if !pattern.MatchString(m.name) || ctx.Err() != nil {
			continue
		}
		log.Printf("measuring %s", m.name)
		rows, err := m.run(ctx, b)
		if err != nil {
			log.Printf("%s: %v", m.name, err)
			failed = true
		}
		for _, r := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.name, r.value, r.spread, r.ratio, r.peak)
		}
	}
	table.Flush()
	return failed || ctx.Err() != nil
}
