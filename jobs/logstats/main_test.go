package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// combined is the log format as a regular expression.
var combined = regexp.MustCompile(`^([^ ]+) .* \[([^\]]*)\] "((?:[^\\"]|\\.)*)" ([^ ]*) ([^ ]*)(?: |$)`)

// matched parses a line with it.
func matched(line string) (r request, ok bool) {
	m := combined.FindStringSubmatch(line)
	if m == nil {
		return r, false
	}
	when, err := time.Parse("2/Jan/2006:15:04:05 -0700", m[2])
	if err != nil || m[2][2] != '/' {
		return r, false
	}
	r = request{client: m[1], time: when, page: m[3]}
	if words := strings.Split(m[3], " "); len(words) > 1 {
		r.page = strings.Split(words[1], "?")[0]
	}
	if !regexp.MustCompile(`^\+?0*[1-5][0-9][0-9]$`).MatchString(m[4]) {
		return r, false
	}
	r.status, _ = strconv.Atoi(m[4])
	if m[5] != "-" {
		if r.bytes, err = strconv.ParseInt(m[5], 10, 64); err != nil || m[5][0] == '+' || m[5][0] == '-' {
			return r, false
		}
	}
	return r, true
}

// counted is what the job prints for lines.
func counted(lines []string) string {
	var out strings.Builder
	var malformed, bytes int64
	var requests []request
	pages := map[string]int{}
	for _, line := range lines {
		r, ok := matched(line)
		if !ok {
			malformed++
			continue
		}
		requests = append(requests, r)
		bytes += r.bytes
		pages[r.page]++
	}
	fmt.Fprintf(&out, "requests %d\nmalformed lines %d\nbytes %d\n", len(requests), malformed, bytes)

	// A session begins at each request without another of the client in the
	// half hour before.
	sort.SliceStable(requests, func(i, j int) bool { return requests[i].time.Before(requests[j].time) })
	begun, last := map[string]time.Time{}, map[string]time.Time{}
	var lengths []time.Duration
	for _, r := range requests {
		before, known := last[r.client]
		if known && r.time.Sub(before) > 30*time.Minute {
			lengths = append(lengths, before.Sub(begun[r.client]))
			known = false
		}
		if !known {
			begun[r.client] = r.time
		}
		last[r.client] = r.time
	}
	for client, at := range last {
		lengths = append(lengths, at.Sub(begun[client]))
	}
	fmt.Fprintf(&out, "sessions %d", len(lengths))
	if len(lengths) > 0 {
		var sum time.Duration
		for _, l := range lengths {
			sum += l
		}
		fmt.Fprintf(&out, ", %.1f seconds long on average", sum.Seconds()/float64(len(lengths)))
	}
	out.WriteString("\n")

	for range 5 {
		best := ""
		for page, n := range pages {
			if n > pages[best] || n == pages[best] && page < best {
				best = page
			}
		}
		if n := pages[best]; n > 0 {
			fmt.Fprintf(&out, "page %s %d\n", best, n)
			delete(pages, best)
		}
	}
	for hour := range 24 {
		all, failed := 0, 0
		for _, r := range requests {
			if r.time.Format("15") == fmt.Sprintf("%02d", hour) {
				all++
				if s := strconv.Itoa(r.status)[0]; s == '4' || s == '5' {
					failed++
				}
			}
		}
		if all > 0 {
			fmt.Fprintf(&out, "hour %02d %.2f%% of %d failed\n", hour, 100*float64(failed)/float64(all), all)
		}
	}
	return out.String()
}

func TestStatisticsAreThoseOfAPlainCount(t *testing.T) {
	const agent = ` "-" "Mozilla/5.0 \"x\" (y)"`
	var sample []string
	for i := range int64(300) {
		sample = append(sample, sampleSession(i)...)
	}
	for _, c := range []struct {
		name  string
		lines []string
	}{
		{"nothing", nil},
		{"one request", []string{`a - - [10/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 200 17` + agent}},
		{"nothing but rubbish", []string{"", " ", "rubbish", `a - - [x] "GET / HTTP/1.1" 200 1`}},
		{"pauses of half an hour and a second more, out of order", []string{
			`a - - [10/Oct/2025:13:00:01 +0000] "GET /2 HTTP/1.1" 200 1`,
			`a - - [10/Oct/2025:12:00:00 +0000] "GET /1 HTTP/1.1" 200 1`,
			`a - - [10/Oct/2025:12:30:00 +0000] "GET /1 HTTP/1.1" 200 1`,
			`b - - [10/Oct/2025:12:45:00 +0000] "GET /1 HTTP/1.1" 200 1`,
		}},
		{"zones: one moment, two hours of the day", []string{
			`a - - [10/Oct/2025:23:59:59 +0000] "GET / HTTP/1.1" 200 1`,
			`a - - [11/Oct/2025:01:59:59 +0200] "GET / HTTP/1.1" 500 1`,
		}},
		{"quotes and odd requests", []string{
			`::1 - a b [10/Oct/2025:13:55:36 +0200] "GET /a\"b?c=\"d HTTP/1.1" 404 -` + agent,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "-" 408 0`,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "" 400 0`,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "\x16\x03" 400 0`,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1 200 0`,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 600 0`,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 200`,
			`::1 - - [10/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 200 -7`,
			`::1 - - [31/Feb/2025:13:55:36 +0200] "GET / HTTP/1.1" 200 7`,
		}},
		{"the sample", sample},
	} {
		for _, parts := range []int{1, 3, 1000} {
			s, err := statisticsOf(newContext(t).Parallelize(c.lines, parts))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			s.print(&got)
			if diff := cmp.Diff(counted(c.lines), got.String()); diff != "" {
				t.Errorf("%s in %d partitions (-want +got):\n%s", c.name, parts, diff)
			}
		}
	}
}

func TestTheSampleIsWrittenAndRead(t *testing.T) {
	dir := t.TempDir()
	var printed []string
	for _, parts := range []string{"1", "5", "50"} {
		path := filepath.Join(dir, parts)
		var out strings.Builder
		if err := run(newContext(t), []string{"gen", "-sessions", "40", "-parts", parts, path}, &out); err != nil {
			t.Fatal(err)
		}
		if err := run(newContext(t), []string{path}, &out); err != nil {
			t.Fatal(err)
		}
		printed = append(printed, out.String())
	}
	if len(slices.Compact(slices.Clone(printed))) != 1 {
		t.Errorf("with other partitions the sample is another: %q", printed)
	}
	if !strings.Contains(printed[0], "\nsessions 40, ") {
		t.Errorf("the output is %q, want 40 sessions", printed[0])
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {"gen"}, {"gen", "a", "b"}} {
		if err := run(newContext(t), args, &strings.Builder{}); err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
			t.Errorf("logstats %q: the error is %v, want the usage", args, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if err := run(newContext(t), []string{missing}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("the error is %v, want it to name %s", err, missing)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Errorf("%s has come to be", missing)
	}
}

func FuzzParseTakesWhatTheFormatTakes(f *testing.F) {
	f.Add(`a - - [10/Oct/2025:13:55:36 +0200] "GET /a?b HTTP/1.1" 200 17 "-" "x"`)
	f.Add(`a - - [10/Oct/2025:13:55:36 +0200] "GET /a\" HTTP/1.1" 404 -`)
	f.Add(`a b [c] [10/Oct/2025:13:55:36 +0200] "-" 408 0`)
	f.Add(`a [10/Oct/2025:13:55:36 -1130] "" 099 0`)
	f.Add("")
	f.Add("a - - [")
	f.Add(`a [10/Oct/2025:13:55:36 +0000] "" 200 0`)
	f.Add(`a  [1/Oct/2025:13:55:36 +0000] ""200 0`)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Count(line, "[") != 1 || strings.ContainsAny(line, "\n\r") {
			return // which bracket begins the time is not for the format to say
		}
		want, ok := matched(line)
		if !ok {
			want = request{}
		}
		if got := parse(line); got.client != want.client || !got.time.Equal(want.time) || got.page != want.page ||
			got.status != want.status || got.bytes != want.bytes {
			t.Errorf("parse(%q) is %+v, want %+v", line, got, want)
		}
	})
}
