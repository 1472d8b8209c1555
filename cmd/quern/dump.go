package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// dumpCutter passes on what a driver prints on standard error, and of the report
// with which Go's runtime ends a program what its author can use: the reason and
// the stack of the first goroutine. When memory is refused, the runtime adds a
// screen of goroutines of its own. Everything else passes as it is, at once.
type dumpCutter struct {
	out  io.Writer
	at   dumpState
	line []byte // what is known of the current line: its beginning, or all of it behind a stack
	held string // a blank line behind a stack
	cut  int    // goroutines left out since the last note
}

type dumpState int

const (
	noDump       dumpState = iota
	dumpReason             // "fatal error: ..." or "panic: ..." has been seen
	dumpFirst              // in the first goroutine's stack
	dumpBetween            // behind a stack
	dumpLeftOut            // in a stack that is left out
	lineIsEnough = 200     // bytes of a line that say what it is
)

var goroutineHeader = regexp.MustCompile(`^goroutine \d+ .*\]:$`)

const goroutine = "goroutine "

func (d *dumpCutter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		if ended {
			part = b[:len(part)+1]
		}
		if err := d.write(part, ended); err != nil {
			return n - len(b), err
		}
		b = rest
	}
	return n, nil
}

// write takes a part of a line, which ends it or not.
func (d *dumpCutter) write(part []byte, ended bool) error {
	if room := lineIsEnough - len(d.line); room > 0 || d.at == dumpBetween {
		d.line = append(d.line, part...)
	}
	line := strings.TrimSuffix(string(d.line), "\n")
	if d.at == dumpBetween {
		begun := line[:min(len(line), len(goroutine))]
		switch {
		case !strings.HasPrefix(goroutine, begun) || len(line) > lineIsEnough || ended && line != "" && !goroutineHeader.MatchString(line):
			part, d.line = []byte(line), nil // other text
			if ended {
				part = append(part, '\n')
			}
			if err := d.note(); err != nil {
				return err
			}
			d.at = noDump
		case ended && line != "":
			d.at, d.line, d.cut = dumpLeftOut, nil, d.cut+1
			return nil
		case ended:
			d.line, d.held = nil, d.held+"\n"
			return nil
		default:
			return nil // until more of the line is there
		}
	}
	if ended {
		d.line = nil
		switch {
		case strings.HasPrefix(line, "fatal error: "), strings.HasPrefix(line, "panic: "):
			d.at = dumpReason
		case d.at == dumpReason && goroutineHeader.MatchString(line):
			d.at = dumpFirst
		case d.at == dumpLeftOut && line == "":
			d.at = dumpBetween
			return nil
		case d.at == dumpFirst && line == "":
			d.at, d.held = dumpBetween, "\n"
			return nil
		}
	}
	if d.at == dumpLeftOut {
		return nil
	}
	_, err := d.out.Write(part)
	return err
}

// note says how much was left out, or prints the blank lines that were held back
// if nothing was.
func (d *dumpCutter) note() error {
	text := d.held
	if d.cut > 0 {
		text = fmt.Sprintf("[goroutines left out: %d; --verbose shows them]\n", d.cut)
	}
	d.held, d.cut = "", 0
	_, err := io.WriteString(d.out, text)
	return err
}

// close passes on what was held back.
func (d *dumpCutter) close() error {
	var line []byte
	if d.at == dumpBetween {
		line = d.line
	}
	err := d.note()
	if err == nil && len(line) > 0 {
		_, err = d.out.Write(line)
	}
	d.at, d.line = noDump, nil
	return err
}
