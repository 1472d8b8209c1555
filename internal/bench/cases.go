package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// startUp is a warm run of a tiny job: process, module from the cache, driver,
// one action, exit.
func startUp(ctx context.Context, b *bench) ([]row, error) {
	job, err := b.job(ctx, "jobs/pi")
	if err != nil {
		return nil, err
	}
	runs, err := b.inTurn(ctx, command{args: []string{b.quern, "run", job, "1"}})
	if err != nil {
		return nil, err
	}
	return []row{timed("start-up: quern run of pi, one partition, warm", runs[0])}, nil
}

// emptyTasks is the whole scheduler's throughput, as the driver sees it.
func emptyTasks(ctx context.Context, b *bench) ([]row, error) {
	job, err := b.job(ctx, "internal/bench/tasks")
	if err != nil {
		return nil, err
	}
	const tasks = 100_000
	runs, err := b.inTurn(ctx, command{args: []string{b.quern, "run", job, strconv.Itoa(tasks)}})
	if err != nil {
		return nil, err
	}
	rate := of(runs[0], func(u usage) float64 {
		nanos, _ := strconv.ParseFloat(strings.TrimSpace(u.stdout), 64)
		return tasks / (nanos / 1e9)
	})
	return []row{{
		name:   "100,000 empty tasks",
		value:  humanize.Comma(int64(rate.median())) + " tasks/s",
		spread: humanize.Comma(int64(rate[0])) + " … " + humanize.Comma(int64(rate[len(rate)-1])),
		peak:   peak(runs[0]),
	}}, nil
}

// wordCount counts the words of the Go toolchain's source against a native
// program in one thread, and compares the results.
func wordCount(ctx context.Context, b *bench) ([]row, error) {
	job, err := b.job(ctx, "jobs/wordcount")
	if err != nil {
		return nil, err
	}
	source := filepath.Join(b.goroot, "src")
	size, err := sizeOf(source)
	if err != nil {
		return nil, err
	}
	runs, err := b.inTurn(ctx,
		command{args: []string{b.quern, "run", "--allow-read", source, job, source}},
		command{args: []string{filepath.Join(b.dir, "reference"), source}})
	if err != nil {
		return nil, err
	}
	ours, native := runs[0], runs[1]
	if ours[0].stdout != native[0].stdout {
		return nil, fmt.Errorf("the counts differ:\n%s\nnatively:\n%s", ours[0].stdout, native[0].stdout)
	}
	r := timed("word count, "+humanize.IBytes(uint64(size))+" of Go source", ours)
	r.value += fmt.Sprintf(", %.0f MB/s", float64(size)/1e6/of(ours, wall).median())
	r.ratio = against("native Go, 1 thread", ours, native)
	return []row{r, timed("  native Go, 1 thread", native)}, nil
}

// sortRecords sorts records of 100 bytes against GNU sort, and validates.
func sortRecords(ctx context.Context, b *bench) ([]row, error) {
	job, err := b.job(ctx, "jobs/sort")
	if err != nil {
		return nil, err
	}
	in, out := filepath.Join(b.dir, "records"), filepath.Join(b.dir, "sorted")
	if _, err := output(ctx, b.quern, "run", "--allow-write", b.dir, job, "gen", "-n", fmt.Sprint(b.sortBytes/100), in); err != nil {
		return nil, err
	}
	parts, err := filepath.Glob(filepath.Join(in, "part-*"))
	if err != nil {
		return nil, err
	}
	clean := func() error { return os.RemoveAll(out) }
	runs, err := b.inTurn(ctx,
		command{args: []string{b.quern, "run", "--allow-read", b.dir, "--allow-write", b.dir, job, "sort", in, out}, before: clean},
		command{
			args: append([]string{"sort", "--parallel=2", "-T", b.dir, "-o", filepath.Join(b.dir, "sorted.gnu")}, parts...),
			env:  []string{"LC_ALL=C"},
		})
	if err != nil {
		return nil, err
	}
	var sums [2]string
	for i, folder := range []string{in, out} {
		text, err := output(ctx, b.quern, "run", "--allow-read", b.dir, job, "validate", folder)
		if i == 1 && err != nil {
			return nil, err // the input is not in order, and said so
		}
		sums[i] = checksum(text)
	}
	if sums[0] != sums[1] {
		return nil, fmt.Errorf("what was sorted is not what was there: %q, before %q", sums[1], sums[0])
	}
	ours, gnu := runs[0], runs[1]
	r := timed("sort, "+humanize.IBytes(uint64(b.sortBytes))+" of 100-byte records", ours)
	r.value += fmt.Sprintf(", %.0f MB/s", float64(b.sortBytes)/1e6/of(ours, wall).median())
	r.ratio = against("LC_ALL=C sort --parallel=2", ours, gnu)
	return []row{r, timed("  LC_ALL=C sort --parallel=2", gnu)}, nil
}

// checksum is the line of validate's report that does not depend on the order.
func checksum(report string) string {
	for line := range strings.Lines(report) {
		if strings.Contains(strings.ToLower(line), "checksum") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// join joins 2 million orders with 200,000 customers.
func join(ctx context.Context, b *bench) ([]row, error) {
	const customers, orders = 200_000, 2_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	left, right := filepath.Join(b.dir, "customers"), filepath.Join(b.dir, "orders")
	err := errors.Join(
		lines(left, customers, func(i int) string { return fmt.Sprintf("%d,customer %d", i, i) }),
		lines(right, orders, func(i int) string {
			return fmt.Sprintf("%d,%d,%d", i, rng.IntN(customers), rng.IntN(100_000))
		}))
	if err != nil {
		return nil, err
	}
	return b.plain(ctx, "join, 2 million orders with 200,000 customers", "jobs/join", left, right)
}

// pageRank ranks a random graph.
func pageRank(ctx context.Context, b *bench) ([]row, error) {
	const pages, edges = 100_000, 1_000_000
	rng := rand.New(rand.NewPCG(3, 4))
	graph := filepath.Join(b.dir, "edges")
	err := lines(graph, edges, func(int) string { return fmt.Sprintf("%d\t%d", rng.IntN(pages), rng.IntN(pages)) })
	if err != nil {
		return nil, err
	}
	return b.plain(ctx, "pagerank, 1 million edges, 10 rounds", "jobs/pagerank", "-iterations", "10", graph)
}

// plain measures a job on its own.
func (b *bench) plain(ctx context.Context, name, folder string, args ...string) ([]row, error) {
	job, err := b.job(ctx, folder)
	if err != nil {
		return nil, err
	}
	runs, err := b.inTurn(ctx, command{args: append([]string{b.quern, "run", "--allow-read", b.dir, job}, args...)})
	if err != nil {
		return nil, err
	}
	return []row{timed(name, runs[0])}, nil
}

// lines writes a file of n lines.
func lines(path string, n int, line func(i int) string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintln(w, line(i))
	}
	return errors.Join(w.Flush(), f.Close())
}

// sizeOf is the bytes of the files that a text source reads in a folder.
func sizeOf(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	return size, err
}
