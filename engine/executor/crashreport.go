package executor

import (
	"fmt"
	"slices"
	"strings"
)

// Some deaths of a guest pass its SDK by: Go's runtime prints a report on
// standard error and exits with code 2 when all goroutines are asleep, when two
// write a map at once, when memory is refused, and when a goroutine that is not
// the task's own panics. The report is worth more than the exit code, and it
// belongs into the task's failure rather than into its log.

// crashReport is such a report.
type crashReport struct {
	message string // one line
	stack   string // the user's frames
}

// splitCrashReport cuts what a task printed into what it printed itself and the
// report with which its runtime ended it; nil if there is none.
func splitCrashReport(printed string) (own string, last *crashReport) {
	lines := strings.Split(printed, "\n")
	trace := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "goroutine ") && strings.HasSuffix(l, "]:")
	})
	if trace < 0 {
		return printed, nil
	}
	start := -1
	for i, l := range lines[:trace] {
		if strings.HasPrefix(l, "fatal error: ") || strings.HasPrefix(l, "panic: ") {
			start = i
		}
	}
	if start < 0 {
		return printed, nil
	}
	message := start + 1
	for message < trace && strings.TrimSpace(lines[message]) != "" {
		message++
	}
	last = &crashReport{
		message: oneLine(strings.Join(lines[start:message], "\n")),
		stack:   userFrames(lines[trace+1:]),
	}
	for start > 0 && strings.HasPrefix(lines[start-1], "runtime: ") { // says the same in other words
		start--
	}
	if start == 0 {
		return "", last
	}
	return strings.Join(lines[:start], "\n") + "\n", last
}

const goSDK = "github.com/quern-project/quern/sdk/quern."

// userFrames keeps of the first goroutine's stack what its author can use: not
// the runtime's frames, nor the SDK's, nor those of the driver below the task.
func userFrames(lines []string) string {
	var kept []string
	for i := 0; i+1 < len(lines) && lines[i] != ""; i += 2 {
		function, place := lines[i], lines[i+1]
		if strings.HasPrefix(function, goSDK+"runTask(") {
			break
		}
		if isAnyPrefix(function, "runtime.", "internal/", "panic(", goSDK) {
			continue
		}
		place, _, _ = strings.Cut(place, " fp=0x")
		kept = append(kept, function, place)
	}
	return strings.Join(kept, "\n")
}

func isAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// calls lists functions, innermost first, a line each. Recursion takes one line
// a function.
func calls(functions []string) string {
	var b strings.Builder
	for i := 0; i < len(functions); {
		n := 1
		for i+n < len(functions) && functions[i+n] == functions[i] {
			n++
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(functions[i])
		if n > 1 {
			fmt.Fprintf(&b, " (%d times)", n)
		}
		i += n
	}
	return b.String()
}
