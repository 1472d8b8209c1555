package conf

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// Master says where a job runs. There are only local masters so far: this
// process, with a number of slots.
type Master struct {
	// Slots is how many tasks run at a time, >= 1.
	Slots int
	// MaxFailures is F of local[N,F], >= 1; 0 where it was not given.
	MaxFailures int

	text string
}

// maxSlots bounds N of local[N] to what is not a slip of the finger.
const maxSlots = 4096

func (m Master) String() string { return m.text }

// ParseMaster reads local (one slot), local[N], local[*] (a slot for each core
// that this process may use), and the same with a number of failures: a task
// of local[N,F] or local[*,F] is tried F times.
func ParseMaster(s string) (Master, error) {
	m := Master{Slots: 1, text: s}
	if s == "local" {
		return m, nil
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return m, fmt.Errorf("this version has local masters only, no %s:// one", scheme)
	}
	inside, ok := strings.CutPrefix(s, "local[")
	if !ok {
		return m, errors.New("no such master")
	}
	inside, ok = strings.CutSuffix(inside, "]")
	if !ok {
		return m, errors.New("no closing bracket")
	}
	slots, failures, hasFailures := strings.Cut(inside, ",")
	var err error
	if slots = strings.TrimSpace(slots); slots == "*" {
		m.Slots = runtime.GOMAXPROCS(0)
	} else if m.Slots, err = parseCount(slots, "N, the number of slots,"); err != nil {
		return m, err
	}
	if hasFailures {
		m.MaxFailures, err = parseCount(strings.TrimSpace(failures), "F, the number of attempts,")
	}
	return m, err
}

func parseCount(s, what string) (int, error) {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is %q, not a whole number", what, s)
	case err != nil || n < 1 || n > maxSlots:
		return 0, fmt.Errorf("%s is %s, not from 1 to %d", what, s, maxSlots)
	}
	return n, nil
}

// MaxTaskFailures is how often a task may fail before its job fails: F of
// local[N,F]; else quern.task.maxFailures where it was set; else 1, because on
// one machine the same task mostly fails the same way again.
func MaxTaskFailures(c *Conf) int {
	switch m := MasterURL.Get(c); {
	case m.MaxFailures > 0:
		return m.MaxFailures
	case TaskMaxFailures.IsSet(c):
		return TaskMaxFailures.Get(c)
	}
	return 1
}
