package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
)

func TestBarsLeaveNoTraceBetweenLines(t *testing.T) {
	for _, width := range []int{12, 40, 100} {
		t.Run(fmt.Sprintf("%d columns", width), func(t *testing.T) {
			t.Parallel()
			screen := openScreen(t, width)
			terminal := newTerminal(screen.slave)
			stdout, stderr := terminal.writer(), terminal.writer()
			p := startProgress(terminal)

			first := msg.StageAttempt{Stage: 0}
			second := msg.StageAttempt{Stage: 1}
			fmt.Fprint(stdout, "begin\nhalf a ")
			p.On(event.StageSubmitted{Stage: first, Name: "reduceByKey", CallSite: "example.com/a/main.go:12", Tasks: 4})
			p.On(event.TaskStarted{Stage: first})
			screen.await(t, "stage 0")
			fmt.Fprint(stderr, "WARN something\n")
			fmt.Fprint(stdout, "line\n")
			screen.await(t, "half a line")
			p.On(event.TaskEnded{Stage: first, State: msg.StateFinished})
			p.On(event.StageCompleted{Stage: first})
			p.On(event.StageSubmitted{Stage: second, Name: "collect", Tasks: 2})
			screen.await(t, "stage 1")
			io.WriteString(screen.slave, "^C") // as a terminal echoes it
			fmt.Fprint(stdout, "result 1\nresult 2\nno end of line")
			p.close()
			fmt.Fprint(stdout, ", then more\n")
			screen.slave.Close()

			want := []string{"begin", "WARN something", "half a line", "result 1", "result 2", "no end of line, then more"}
			if got := screen.lines(); strings.Join(got, "\n") != strings.Join(wrap(want, width), "\n") {
				t.Errorf("the screen shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wrap(want, width), "\n"))
			}
		})
	}
}

func TestBarShowsWhatIsDoneRunningAndFailed(t *testing.T) {
	screen := openScreen(t, 100)
	p := startProgress(newTerminal(screen.slave))
	stage := msg.StageAttempt{Stage: 3, Attempt: 1}
	p.On(event.StageSubmitted{Stage: stage, Name: "map", CallSite: "example.com/a/main.go:12", Tasks: 40})
	for range 5 {
		p.On(event.TaskStarted{Stage: stage})
	}
	p.On(event.TaskEnded{Stage: stage, State: msg.StateFinished})
	p.On(event.TaskEnded{Stage: stage, State: msg.StateFinished})
	p.On(event.TaskEnded{Stage: stage, State: msg.StateFailed})
	p.On(event.TaskEnded{Stage: msg.StageAttempt{Stage: 9}, State: msg.StateFinished}) // of a stage that is over
	screen.await(t, "stage 3 again map at main.go:12 [")
	screen.await(t, "2/40 +2, 1 failed")
	p.close()
	screen.slave.Close()
	if got := screen.lines(); len(got) != 0 {
		t.Errorf("the screen shows %q at the end, want nothing", got)
	}
}

func TestPreparationsAreShownWhileTheyLast(t *testing.T) {
	screen := openScreen(t, 60)
	terminal := newTerminal(screen.slave)
	p := startProgress(terminal)
	p.preparing("building .")
	screen.await(t, "building .")
	fmt.Fprintln(terminal.writer(), "go: downloading something")
	p.preparing("compiling .")
	screen.await(t, "compiling .")
	p.preparing("")
	p.On(event.StageSubmitted{Stage: msg.StageAttempt{Stage: 7}, Name: "count", Tasks: 2})
	screen.await(t, "stage 7")
	p.preparing("building again")
	screen.await(t, "building again")
	p.close()
	screen.slave.Close()
	if got := strings.Join(screen.lines(), "\n"); got != "go: downloading something" {
		t.Errorf("the screen shows %q at the end", got)
	}
}

func TestShortPreparationsAreNotShown(t *testing.T) {
	screen := openScreen(t, 60)
	p := startProgress(newTerminal(screen.slave))
	p.preparing("building .")
	p.preparing("")
	p.close()
	screen.slave.Close()
	if raw := screen.raw(); raw != "" {
		t.Errorf("the screen was sent %q, want nothing", raw)
	}
}

func TestShortStagesGetNoBar(t *testing.T) {
	screen := openScreen(t, 80)
	p := startProgress(newTerminal(screen.slave))
	for i := range 50 {
		stage := msg.StageAttempt{Stage: msg.StageID(i)}
		p.On(event.StageSubmitted{Stage: stage, Tasks: 1})
		p.On(event.StageCompleted{Stage: stage})
	}
	p.close()
	screen.slave.Close()
	if raw := screen.raw(); raw != "" {
		t.Errorf("the screen was sent %q, want nothing", raw)
	}
}

// screen is a pseudo-terminal and what was written to it.
type screen struct {
	slave *os.File
	width int
	done  chan struct{}

	mu   sync.Mutex
	sent bytes.Buffer
}

func openScreen(t *testing.T, width int) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	if !isTerminal(slave) || !sameFile(slave, slave) {
		t.Fatal("a pseudo-terminal is not taken for a terminal")
	}
	s := &screen{slave: slave, width: width, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.sent.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return // EIO: the other end is closed
			}
		}
	}()
	return s
}

// raw is everything that was sent, once the other end is closed.
func (s *screen) raw() string {
	<-s.done
	return s.sent.String()
}

// await waits until the screen shows a text, or its beginning where the
// screen is too narrow.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	if len(text) > s.width-1 {
		text = text[:s.width-5]
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		s.mu.Lock()
		sent := s.sent.String()
		s.mu.Unlock()
		if strings.Contains(strings.Join(show(sent, s.width), "\n"), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the screen never showed %q; it was sent %q", text, sent)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lines is what the screen shows in the end, without empty lines below.
func (s *screen) lines() []string { return show(s.raw(), s.width) }

// show interprets what a terminal was sent: text that wraps at the last
// column, carriage returns, line feeds, "cursor up" and "erase below".
func show(sent string, width int) []string {
	rows := [][]rune{nil}
	row, column := 0, 0
	for len(sent) > 0 {
		var up int
		if n, err := fmt.Sscanf(sent, "\x1b[%dA", &up); n == 1 && err == nil {
			row = max(0, row-up)
			sent = sent[strings.IndexByte(sent, 'A')+1:]
			continue
		}
		if rest, ok := strings.CutPrefix(sent, "\x1b[J"); ok {
			rows = rows[:row+1]
			rows[row] = rows[row][:min(column, len(rows[row]))]
			sent = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(sent)
		sent = sent[size:]
		switch {
		case r == '\r':
			column = 0
			continue
		case r == '\n':
			row++
		case r == '\x1b':
			panic(fmt.Sprintf("an escape sequence that the test does not know: %q", sent[:min(8, len(sent))]))
		default:
			if column == width {
				row, column = row+1, 0
			}
		}
		for row >= len(rows) {
			rows = append(rows, nil)
		}
		if r == '\n' {
			continue
		}
		for column >= len(rows[row]) {
			rows[row] = append(rows[row], ' ')
		}
		rows[row][column] = r
		column++
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, strings.TrimRight(string(r), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// wrap cuts lines as a terminal of that width does.
func wrap(lines []string, width int) []string {
	return show(strings.Join(lines, "\r\n")+"\r\n", width)
}
