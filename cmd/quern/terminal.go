package main

import (
	"bytes"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/cupwriter"
	"github.com/vbauerster/mpb/v8"
	"golang.org/x/term"
)

// terminal is a screen that lines of text share with progress bars below them.
// Lines go above the bars and are never torn by one; when the terminal is
// closed no trace of a bar is left.
type terminal struct {
	file *os.File

	mu      sync.Mutex
	bars    *mpb.Progress // nil until there is a bar, and after close
	writers []*lineWriter
	closed  bool
}

func newTerminal(file *os.File) *terminal { return &terminal{file: file} }

// isTerminal says whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sameFile says whether two streams end in the same place.
func sameFile(a, b io.Writer) bool {
	f, ok := a.(*os.File)
	g, ok2 := b.(*os.File)
	if !ok || !ok2 {
		return false
	}
	fi, err := f.Stat()
	gi, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(fi, gi)
}

// carriageReturns begins each write in the first column. Terminals echo what is
// typed, such as ^C, behind the bars; from there the bars could not be erased.
type carriageReturns struct{ file *os.File }

func (c carriageReturns) Write(b []byte) (int, error) {
	n, err := c.file.Write(append([]byte{'\r'}, b...))
	return max(n-1, 0), err
}

// addBar adds a bar of so many steps; nil after close.
func (t *terminal) addBar(steps int64, style mpb.BarFillerBuilder, options ...mpb.BarOption) *mpb.Bar {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if t.bars == nil {
		screen := cupwriter.New(carriageReturns{t.file}, false)
		screen.SetTermFd(int(t.file.Fd()))
		t.bars = mpb.New(mpb.WithConsoleWriter(screen))
	}
	// With a total of 0 at first, a bar ends when it is told to and not by
	// itself at the last step.
	bar, err := t.bars.Add(0, style.Build(), options...)
	if err != nil {
		return nil // the screen is gone
	}
	bar.SetTotal(steps, false)
	return bar
}

// writer returns a stream of text for the screen. It shows whole lines; what
// has no end of line yet follows when the terminal is closed.
func (t *terminal) writer() io.Writer {
	w := &lineWriter{terminal: t}
	t.mu.Lock()
	t.writers = append(t.writers, w)
	t.mu.Unlock()
	return w
}

type lineWriter struct {
	terminal *terminal
	partial  []byte // guarded by the terminal's mutex
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.terminal.mu.Lock()
	defer w.terminal.mu.Unlock()
	if w.terminal.closed {
		return w.terminal.file.Write(b)
	}
	w.partial = append(w.partial, b...)
	end := bytes.LastIndexByte(w.partial, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	if err := w.terminal.print(w.partial[:end]); err != nil {
		return 0, err
	}
	w.partial = append(w.partial[:0], w.partial[end:]...)
	return len(b), nil
}

// print shows whole lines, above the bars if there are any. The caller holds
// the mutex.
func (t *terminal) print(lines []byte) error {
	if t.bars != nil {
		if _, err := t.bars.Write(lines); err == nil {
			return nil
		}
	}
	_, err := t.file.Write(lines)
	return err
}

// close removes the bars and shows what is left of the text. Text that is
// written later goes to the screen as it is. Every bar must have been ended.
func (t *terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	if t.bars != nil {
		t.bars.Wait()
		t.bars = nil
	}
	for _, w := range t.writers {
		t.file.Write(w.partial)
		w.partial = nil
	}
}
