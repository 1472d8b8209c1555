package main

import (
	"context"
	"strconv"
	"strings"
)

// sandboxes runs the benchmarks of wasmhost/sandbox, which have no scheduler
// around them: a task alone, the price of safepoints, the capture of a driver.
func sandboxes(ctx context.Context, b *bench) ([]row, error) {
	text, err := output(ctx, "go", "test", "-run", "^$", "-bench", ".", "-count", strconv.Itoa(b.runs), "./wasmhost/sandbox")
	if err != nil {
		return nil, err
	}
	// A line is: name, rounds, and pairs of a figure and its unit.
	type figure struct{ name, unit string }
	var order []figure
	values := make(map[figure]sample)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			f := figure{name, fields[i+1]}
			if _, known := values[f]; !known {
				order = append(order, f)
			}
			values[f] = append(values[f], v)
		}
	}
	var rows []row
	for _, f := range order {
		s := values[f].sorted()
		rows = append(rows, row{
			name:   "sandbox: " + f.name,
			value:  number(s.median()) + " " + f.unit,
			spread: number(s[0]) + " … " + number(s[len(s)-1]),
		})
	}
	return rows, nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
