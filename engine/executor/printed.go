package executor

import (
	"log/slog"
	"strings"
)

// printed keeps the beginning and the end of what a task prints, so that one
// that prints without end costs no more than a bounded piece of memory.
type printed struct {
	head, tail []byte
	dropped    int64 // bytes between them
}

const (
	headBytes = 32 << 10
	tailBytes = 32 << 10
)

// Write implements io.Writer; it never fails.
func (p *printed) Write(b []byte) (int, error) {
	n := len(b)
	if room := headBytes - len(p.head); room > 0 {
		take := min(room, len(b))
		p.head = append(p.head, b[:take]...)
		b = b[take:]
	}
	if over := len(b) - tailBytes; over > 0 {
		p.dropped += int64(over + len(p.tail))
		p.tail, b = p.tail[:0], b[over:]
	}
	p.tail = append(p.tail, b...)
	if over := len(p.tail) - tailBytes; over > tailBytes { // not with each write
		p.dropped += int64(over)
		p.tail = append(p.tail[:0], p.tail[over:]...)
	}
	return n, nil
}

func (p *printed) String() string {
	if p.dropped == 0 {
		return string(p.head) + string(p.tail)
	}
	return string(p.head) + "\n[… some lines are left out here …]\n" + string(p.tail)
}

// lastLine is the last line that is not empty.
func (p *printed) lastLine() string {
	text := strings.TrimSpace(p.String())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// logLines sends each line of a task's text to the log.
func logLines(log *slog.Logger, text, task string) {
	for line := range strings.Lines(text) {
		log.Info(strings.TrimRight(line, "\r\n"), "task", task)
	}
}
