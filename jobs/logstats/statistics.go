package main

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

// statistics are what the job finds out.
type statistics struct {
	*totals
	sessions
	pages []quern.Pair[string, int64] // the most frequent ones, with their requests
}

func statisticsOf(lines quern.RDD[string]) (s statistics, err error) {
	all := lines.Map(parse)
	if s.totals, err = all.Aggregate(&totals{}, (*totals).add, (*totals).merge); err != nil {
		return s, err
	}
	requests := all.Filter(request.valid)
	s.sessions, err = requests.
		MapToPair(func(r request) (string, int64) { return r.client, r.time.Unix() }).
		GroupByKey().
		MapGroups(sessionsOf).
		Fold(sessions{}, sessions.plus)
	if err != nil {
		return s, err
	}
	s.pages, err = requests.
		MapToPair(func(r request) (string, int64) { return r.page, 1 }).
		ReduceByKey(func(a, b int64) int64 { return a + b }).
		Top(5, func(a, b quern.Pair[string, int64]) int {
			return cmp.Or(cmp.Compare(a.Value, b.Value), strings.Compare(b.Key, a.Key))
		})
	return s, err
}

// totals are the figures that need no grouping.
type totals struct {
	Requests, Malformed, Bytes int64
	Hours                      [24]hour
}

// hour is one of the day, as the server's clock shows it.
type hour struct{ Requests, Failed int64 }

func (t *totals) add(r request) *totals {
	if !r.valid() {
		t.Malformed++
		return t
	}
	t.Requests++
	t.Bytes += r.bytes
	h := &t.Hours[r.time.Hour()]
	h.Requests++
	if r.failed() {
		h.Failed++
	}
	return t
}

func (t *totals) merge(u *totals) *totals {
	t.Requests += u.Requests
	t.Malformed += u.Malformed
	t.Bytes += u.Bytes
	for i, h := range u.Hours {
		t.Hours[i].Requests += h.Requests
		t.Hours[i].Failed += h.Failed
	}
	return t
}

// sessions are some, and how long they lasted together, from each one's first
// request to its last.
type sessions struct{ Sessions, Seconds int64 }

func (s sessions) plus(t sessions) sessions {
	return sessions{s.Sessions + t.Sessions, s.Seconds + t.Seconds}
}

// pause is the longest one inside a session, in seconds.
const pause = 30 * 60

// sessionsOf cuts the requests of one client, given by their times in seconds,
// into sessions.
func sessionsOf(_ string, requests iter.Seq[int64]) sessions {
	times := slices.Sorted(requests)
	s := sessions{Sessions: 1}
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap <= pause {
			s.Seconds += gap
		} else {
			s.Sessions++
		}
	}
	return s
}

func (s statistics) print(out io.Writer) {
	fmt.Fprintf(out, "requests %d\nmalformed lines %d\nbytes %d\n", s.Requests, s.Malformed, s.Bytes)
	fmt.Fprintf(out, "sessions %d", s.Sessions)
	if s.Sessions > 0 {
		fmt.Fprintf(out, ", %.1f seconds long on average", float64(s.Seconds)/float64(s.Sessions))
	}
	fmt.Fprintln(out)
	for _, p := range s.pages {
		fmt.Fprintf(out, "page %s %d\n", p.Key, p.Value)
	}
	for i, h := range s.Hours {
		if h.Requests > 0 {
			fmt.Fprintf(out, "hour %02d %.2f%% of %d failed\n", i, 100*float64(h.Failed)/float64(h.Requests), h.Requests)
		}
	}
}
