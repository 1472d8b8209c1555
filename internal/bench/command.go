package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
)

// bench is where and how is measured.
type bench struct {
	runs      int
	sortBytes int64
	dir       string // for everything that is built and written; removed at the end
	quern     string // the binary
	goroot    string
}

// prepare builds the binary and the reference.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "quern-bench-*"); err != nil {
		return err
	}
	b.quern = filepath.Join(b.dir, "quern")
	if _, err := output(ctx, "go", "build", "-trimpath", "-o", b.quern, "./cmd/quern"); err != nil {
		return err
	}
	if _, err := output(ctx, "go", "build", "-o", filepath.Join(b.dir, "reference"), "./internal/bench/reference"); err != nil {
		return err
	}
	root, err := output(ctx, "go", "env", "GOROOT")
	b.goroot = strings.TrimSpace(root)
	return err
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	u, err := measure(ctx, exec.CommandContext(ctx, name, args...))
	return u.stdout, err
}

// job builds a job and answers its module.
func (b *bench) job(ctx context.Context, folder string) (string, error) {
	out := filepath.Join(b.dir, filepath.Base(folder)+".wasm")
	_, err := output(ctx, b.quern, "build", "-o", out, folder)
	return out, err
}

// usage is what one run of a command took.
type usage struct {
	wall   time.Duration
	peak   int64 // bytes of resident memory
	stdout string
}

func measure(ctx context.Context, c *exec.Cmd) (usage, error) {
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	start := time.Now()
	err := c.Run()
	u := usage{wall: time.Since(start), stdout: stdout.String()}
	if c.ProcessState != nil {
		if r, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
			u.peak = r.Maxrss << 10
		}
	}
	if err != nil {
		return u, fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, stderr.String())
	}
	return u, nil
}

// command is one side of a comparison. before, if not nil, is done before each
// run and not measured.
type command struct {
	args   []string
	env    []string
	before func() error
}

func (k command) run(ctx context.Context) (usage, error) {
	if k.before != nil {
		if err := k.before(); err != nil {
			return usage{}, err
		}
	}
	c := exec.CommandContext(ctx, k.args[0], k.args[1:]...)
	c.Env = append(os.Environ(), k.env...)
	return measure(ctx, c)
}

// inTurn runs each command once to warm up, then all of them in turn, and
// answers their runs.
func (b *bench) inTurn(ctx context.Context, commands ...command) ([][]usage, error) {
	all := make([][]usage, len(commands))
	for round := range b.runs + 1 {
		for i, k := range commands {
			u, err := k.run(ctx)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				all[i] = append(all[i], u)
			}
		}
	}
	return all, nil
}

// sample is a sorted list of figures.
type sample []float64

func (s sample) sorted() sample {
	slices.Sort(s)
	return s
}

func of(runs []usage, figure func(usage) float64) sample {
	var s sample
	for _, u := range runs {
		s = append(s, figure(u))
	}
	return s.sorted()
}

func (s sample) median() float64 { return (s[(len(s)-1)/2] + s[len(s)/2]) / 2 }

func wall(u usage) float64 { return u.wall.Seconds() }

func peak(runs []usage) string {
	most := slices.MaxFunc(runs, func(a, b usage) int { return int(a.peak - b.peak) })
	return humanize.IBytes(uint64(most.peak))
}

// timed is a row of wall times.
func timed(name string, runs []usage) row {
	s := of(runs, wall)
	return row{name: name, value: seconds(s.median()), spread: seconds(s[0]) + " … " + seconds(s[len(s)-1]), peak: peak(runs)}
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.0f ms", 1e3*s)
	}
	return fmt.Sprintf("%.2f s", s)
}

// against is the median of the ratios of the times of runs made in turn, as
// how many times faster a is than b.
func against(name string, a, b []usage) string {
	var s sample
	for i := range a {
		s = append(s, b[i].wall.Seconds()/a[i].wall.Seconds())
	}
	return fmt.Sprintf("%.2f times the speed of %s", s.sorted().median(), name)
}
