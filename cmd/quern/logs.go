package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/quern-project/quern/internal/units"
)

// logHandler writes log records as lines for people: the level, the message,
// then what belongs to it as key=value. In verbose mode a time stands first.
type logHandler struct {
	level slog.Level
	times bool
	attrs string // " key=value" of WithAttrs, ready to print
	group string // prefix of keys, "" or ending in a dot

	mu  *sync.Mutex
	out io.Writer
}

// newLog returns the log of a command on out. What the engine does in detail is
// only in it when verbose.
func newLog(out io.Writer, verbose bool) *slog.Logger {
	h := &logHandler{level: slog.LevelInfo, mu: new(sync.Mutex), out: out}
	if verbose {
		h.level, h.times = slog.LevelDebug, true
	}
	return slog.New(h)
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if h.times && !r.Time.IsZero() {
		b.WriteString(r.Time.Format("15:04:05.000 "))
	}
	fmt.Fprintf(&b, "%s %s%s", r.Level, r.Message, h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.group, a)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, b.String())
	return err
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		appendAttr(&b, h.group, a)
	}
	with := *h
	with.attrs = b.String()
	return &with
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.group += name + "."
	return &with
}

func appendAttr(b *strings.Builder, group string, a slog.Attr) {
	a.Value = a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if a.Value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range a.Value.Group() {
			appendAttr(b, group, inner)
		}
		return
	}
	text := a.Value.String()
	if a.Value.Kind() == slog.KindDuration {
		text = units.Duration(a.Value.Duration())
	}
	switch {
	case strings.Contains(text, "\n"): // such as a guest's stack
		text = "\n\t" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n\t")
	case text == "" || strings.ContainsAny(text, " \t\"="):
		text = strconv.Quote(text)
	}
	fmt.Fprintf(b, " %s%s=%s", group, a.Key, text)
}
