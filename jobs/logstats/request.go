package main

import (
	"strconv"
	"strings"
	"time"
)

// request is a line of the log.
type request struct {
	client string
	time   time.Time
	page   string // what was asked for, without its query
	status int    // 0 for a line that is no request
	bytes  int64
}

func (r request) valid() bool { return r.status != 0 }

// failed says that the client or the server made a mistake.
func (r request) failed() bool { return r.status >= 400 }

// parse reads a line such as
//
//	192.0.2.7 - alice [10/Oct/2025:13:55:36 +0200] "GET /a?b=c HTTP/1.1" 200 2326 "http://example.com/" "Mozilla/5.0"
//
// It answers the zero request if it is none. What follows the number of bytes is
// not looked at, so the common log format, which ends there, will do.
func parse(line string) request {
	client, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, " [")
	at, rest, _ := strings.Cut(rest, `] "`)
	asked, rest, closed := cutQuoted(rest)
	rest, spaced := strings.CutPrefix(rest, " ")
	code, rest, _ := strings.Cut(rest, " ")
	sent, _, _ := strings.Cut(rest, " ")
	when, timeErr := time.Parse("02/Jan/2006:15:04:05 -0700", at)
	status, statusErr := strconv.Atoi(code)
	var bytes uint64
	var bytesErr error
	if sent != "-" { // which stands for nothing sent
		bytes, bytesErr = strconv.ParseUint(sent, 10, 63)
	}
	if client == "" || timeErr != nil || !closed || !spaced || statusErr != nil || status < 100 || status > 599 || bytesErr != nil {
		return request{}
	}
	return request{client, when, pageOf(asked), status, int64(bytes)}
}

// cutQuoted cuts text at the quotation mark that ends it. One after a backslash
// does not.
func cutQuoted(s string) (inside, after string, found bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// pageOf takes the page out of "GET /page?query HTTP/1.1". What clients send that
// do not speak HTTP is taken as it is.
func pageOf(asked string) string {
	_, target, found := strings.Cut(asked, " ")
	if !found {
		return asked
	}
	target, _, _ = strings.Cut(target, " ")
	page, _, _ := strings.Cut(target, "?")
	return page
}
