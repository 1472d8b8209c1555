package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// figure is a row that a Go benchmark measures.
type figure struct {
	name string
	key  string // the benchmark, without that word and the number of cores, and the unit, which is one of time
	// What the ratio is against, if there is something: the key of another
	// figure, and what the ratio means.
	against, means string
}

// What a ratio means: how many times faster, or how many times the time.
const (
	speedOf     = "times the speed of "
	timeWithout = "times the time without"
)

// sandboxFigures are measured without a scheduler around.
var sandboxFigures = []figure{
	{"one task alone, C guest", "TaskC ns/op", "", ""},
	{"one task alone, Go guest", "TaskGo ns/op", "", ""},
	{"one task alone, Go guest with a 100 MB heap", "TaskGo100MB ns/op", "", ""},
	{"tasks on all cores at once, Go guest, for each", "TaskGoParallel ns/op", "TaskGo ns/op", speedOf + "one at a time"},
	{"capture of a driver's 100 MB heap, first, per MiB", "CaptureFirst ns/MiB", "", ""},
	{"second capture, when 1% has changed, per MiB", "CaptureSecond ns/MiB", "CaptureFirst ns/MiB", speedOf + "the first"},
	{"load of a Go module, cold", "LoadCold ns/op", "", ""},
	{"load of a Go module, warm", "LoadWarm ns/op", "LoadCold ns/op", speedOf + "cold"},
	{"driver from start to end, Go guest", "Start ns/op", "", ""},
}

// safepointFigures are loops of guests with safepoints. What they cost is the
// ratio.
var safepointFigures = []figure{
	withSafepoints("word count in Go", "go/words"),
	withSafepoints("sort in Go", "go/sort"),
	withSafepoints("small copies in Go", "go/copy"),
	withSafepoints("matrices in Go", "go/matmul"),
	withSafepoints("tightest loop in Go", "go/scan"),
	withSafepoints("sort in C", "c/sort"),
	withSafepoints("small copies in C", "c/copy"),
	withSafepoints("matrices in C", "c/matmul"),
	withSafepoints("tightest loop in C", "c/scan"),
}

func withSafepoints(name, kernel string) figure {
	key := "Safepoints/" + kernel
	return figure{"with safepoints: " + name, key + " on-ns", key + " off-ns", timeWithout}
}

// sandboxes runs the benchmarks of wasmhost: a task alone, the capture of a
// driver, the price of safepoints.
func sandboxes(ctx context.Context, b *bench) ([]row, error) {
	rows, err := b.goBenchmarks(ctx, "wasmhost/sandbox", "^Benchmark(Task(C|Go|Go100MB|GoParallel)|CaptureFirst|CaptureSecond|LoadCold|LoadWarm|Start)$", sandboxFigures)
	if err != nil {
		return rows, err
	}
	more, err := b.goBenchmarks(ctx, "wasmhost/module", "^BenchmarkSafepoints$/^(go|c)$/^(words|sort|copy|matmul|scan)$", safepointFigures)
	return append(rows, more...), err
}

// goBenchmarks runs benchmarks of a package, all of them once in each run, and
// answers the rows of figures.
func (b *bench) goBenchmarks(ctx context.Context, folder, pattern string, figures []figure) ([]row, error) {
	binary := filepath.Join(b.dir, filepath.Base(folder)+".test")
	if _, err := output(ctx, "go", "test", "-c", "-o", binary, "./"+folder); err != nil {
		return nil, err
	}
	values := make(map[string]sample)
	for range b.runs {
		c := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", pattern)
		c.Dir = folder
		u, err := measure(ctx, c)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(u.stdout) {
			readBenchmark(line, values)
		}
	}
	var rows []row
	for _, f := range figures {
		own, other := values[f.key], values[f.against]
		if len(own) != b.runs || f.against != "" && len(other) != b.runs {
			return rows, fmt.Errorf("%s: %d figures of %q in %d runs", folder, len(own), f.key, b.runs)
		}
		var ratios sample
		for i := range other {
			if f.means == timeWithout {
				ratios = append(ratios, own[i]/other[i])
			} else {
				ratios = append(ratios, other[i]/own[i])
			}
		}
		r := row{name: f.name}
		if len(ratios) > 0 {
			r.ratio = fmt.Sprintf("%.2f %s", ratios.sorted().median(), f.means)
		}
		own = own.sorted()
		r.value, r.spread = nanoseconds(own.median()), nanoseconds(own[0])+" … "+nanoseconds(own[len(own)-1])
		rows = append(rows, r)
	}
	return rows, nil
}

// readBenchmark adds what a line of a benchmark's output says to values. Such a
// line has the name, the number of rounds, and pairs of a figure and its unit.
func readBenchmark(line string, values map[string]sample) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	name := strings.TrimPrefix(fields[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		name = name[:i] // the number of cores
	}
	for i := 2; i+1 < len(fields); i += 2 {
		if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
			key := name + " " + fields[i+1]
			values[key] = append(values[key], v)
		}
	}
}

// nanoseconds shows a time with three digits.
func nanoseconds(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}} {
		if n < 999.5*u.size {
			return fmt.Sprintf("%.3g %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g s", n/1e9)
}
