package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What changes in an error with every edit of a job's source, every release of Go
// and every run: where a line stands, how a closure is called, how far into a
// function a call is; how much memory there was; when.
var (
	ownLine   = regexp.MustCompile(`(?:[^ \t(]*/testdata/\w+/)?\b(main|driver)\.go:(\d+)(?: \+0x[0-9a-f]+)?`)
	goLine    = regexp.MustCompile(`\t\S*/src/(\S+\.go):\d+(?: \+0x[0-9a-f]+)?`)
	closure   = regexp.MustCompile(`\b(main\.init)\.func\d+(?:\.\d+)?`)
	amount    = regexp.MustCompile(`\b(memory is|calls take|it uses) [0-9.]+ [KMG]iB`)
	times     = regexp.MustCompile(`\(\d+ times\)`)
	date      = regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`)
	arguments = regexp.MustCompile(`\((?:\{?0x[0-9a-f]+(?:, \.\.\.)?\}?,? ?)+\)`)
)

// legible puts into a text, where it names a line of a job of testdata, what that
// line has: the remark at its end, or the statement.
func legible(t testing.TB, job, text string) string {
	t.Helper()
	text = ownLine.ReplaceAllStringFunc(text, func(place string) string {
		m := ownLine.FindStringSubmatch(place)
		source, err := os.ReadFile(filepath.Join("testdata", job, m[1]+".go"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(source), "\n")
		n, _ := strconv.Atoi(m[2])
		if n < 1 || n > len(lines) {
			t.Fatalf("%s: there are %d lines", place, len(lines))
		}
		code, remark, found := strings.Cut(lines[n-1], "// ")
		if found {
			return "<" + remark + ">"
		}
		return "<" + strings.TrimSpace(code) + ">"
	})
	text = goLine.ReplaceAllString(text, "\tGo's $1")
	text = closure.ReplaceAllString(text, "$1.func")
	text = amount.ReplaceAllString(text, "$1 N MiB")
	text = times.ReplaceAllString(text, "(N times)")
	text = date.ReplaceAllString(text, "DATE")
	return arguments.ReplaceAllString(text, "(...)")
}
