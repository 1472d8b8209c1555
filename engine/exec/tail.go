package exec

import (
	"bytes"
	"log/slog"
)

// tail keeps the beginning and the end of what a task prints, so that a task
// that prints without end costs no more than a bounded piece of memory.
type tail struct {
	head, last []byte
	dropped    int64
}

const (
	headBytes = 32 << 10
	tailBytes = 32 << 10
)

// Write implements io.Writer; it never fails.
func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if room := headBytes - len(t.head); room > 0 {
		take := min(room, len(b))
		t.head = append(t.head, b[:take]...)
		b = b[take:]
	}
	t.last = append(t.last, b...)
	if over := len(t.last) - tailBytes; over > tailBytes {
		t.dropped += int64(over)
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	if t.dropped == 0 {
		return string(t.head) + string(t.last)
	}
	return string(t.head) + "\n[… some lines left out …]\n" + string(t.last)
}

// log sends each line to the log.
func (t *tail) log(log *slog.Logger, task string) {
	if len(t.head) == 0 {
		return
	}
	for line := range bytes.Lines([]byte(t.String())) {
		log.Info(string(bytes.TrimRight(line, "\n")), "task", task)
	}
}
