package conf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// declaration is all there is to know about a key, whatever its type.
type declaration struct {
	name    string
	allowed string // what the key takes, for error messages
	doc     string
	// initial is the default's text. It is decided by initialFunc where it
	// depends on the machine or the run, and initial then only describes it.
	initial     string
	initialFunc func() string
	launchOnly  bool
	// exceeds is set where a job may only lower what was decided at launch. It says
	// whether a value is above another one.
	exceeds func(v, limit any) bool
	parse   func(string) (any, error)
}

func (d *declaration) defaultValue() string {
	if d.initialFunc != nil {
		return d.initialFunc()
	}
	return d.initial
}

// declared makes keys of all types fit into the table.
func (d *declaration) declared() *declaration { return d }

// Key is a configuration key with values of type T.
type Key[T any] struct{ *declaration }

// Name is the key as it is written.
func (k Key[T]) Name() string { return k.name }

// Get returns the key's value.
func (k Key[T]) Get(c *Conf) T { return c.values[k.name].parsed.(T) }

// IsSet says whether somebody set the key, if only to its default.
func (k Key[T]) IsSet(c *Conf) bool { return c.values[k.name].setting.Source != FromDefault }

// Set is a setting of the key, such as for a flag of its own.
func (k Key[T]) Set(value string, source Source, origin string) Setting {
	return Setting{Key: k.name, Value: value, Source: source, Origin: origin}
}

// atLaunch makes the key one that a job cannot set for itself: it is decided
// before the job runs, or it protects the machine from the job.
func (k Key[T]) atLaunch() Key[T] { k.launchOnly = true; return k }

// cappedAtLaunch makes the key one of which a job can ask for less than was
// decided before it runs, but not for more: it protects the machine from the job.
// 0 stands for no limit where the key allows it.
func cappedAtLaunch(k Key[Bytes]) Key[Bytes] {
	k.exceeds = func(v, limit any) bool {
		// As unsigned numbers, 0 wraps around to the largest.
		return uint64(v.(Bytes)-1) > uint64(limit.(Bytes)-1)
	}
	return k
}

// decided makes the default depend on the machine or the run.
func (k Key[T]) decided(by func() string) Key[T] { k.initialFunc = by; return k }

func newKey[T any](name, allowed, initial, doc string, parse func(string) (T, error)) Key[T] {
	return Key[T]{&declaration{
		name: name, allowed: allowed, initial: initial, doc: strings.TrimSpace(doc),
		parse: func(s string) (any, error) { return parse(s) },
	}}
}

func intKey(name, initial string, lo, hi int, doc string) Key[int] {
	allowed := fmt.Sprintf("a whole number from %d to %d", lo, hi)
	return newKey(name, allowed, initial, doc, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if errors.Is(err, strconv.ErrSyntax) {
			return 0, errors.New("not a whole number")
		}
		if err != nil {
			return 0, errors.New("out of range")
		}
		return n, within(n, lo, hi)
	})
}

func seedKey(name, initial, doc string) Key[uint64] {
	allowed := fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64))
	return newKey(name, allowed, initial, doc, func(s string) (uint64, error) {
		n, err := strconv.ParseUint(s, 10, 64)
		if errors.Is(err, strconv.ErrSyntax) {
			return 0, errors.New("not a whole number")
		}
		if err != nil {
			return 0, errors.New("out of range")
		}
		return n, nil
	})
}

func fractionKey(name, initial, doc string) Key[float64] {
	return newKey(name, "a number from 0 to 1", initial, doc, func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) {
			return 0, errors.New("not a number")
		}
		return f, within(f, 0, 1)
	})
}

func boolKey(name, initial, doc string) Key[bool] {
	return newKey(name, "true or false", initial, doc, func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, errors.New("neither true nor false")
	})
}

func sizeKey(name, initial string, lo, hi Bytes, doc string) Key[Bytes] {
	allowed := fmt.Sprintf("a size from %v to %v, such as %s", lo, hi, initial)
	if hi == math.MaxInt64 {
		allowed = fmt.Sprintf("a size of at least %v, such as %s", lo, initial)
	}
	return newKey(name, allowed, initial, doc, func(s string) (Bytes, error) {
		n, err := ParseBytes(s)
		if err != nil {
			return 0, err
		}
		return n, within(n, lo, hi)
	})
}

func durationKey(name, initial string, lo, hi time.Duration, doc string) Key[time.Duration] {
	allowed := fmt.Sprintf("a duration from %s to %s, such as %s", durationText(lo), durationText(hi), initial)
	return newKey(name, allowed, initial, doc, func(s string) (time.Duration, error) {
		d, err := ParseDuration(s)
		if err != nil {
			return 0, err
		}
		return d, within(d, lo, hi)
	})
}

func choiceKey(name, initial string, choices []string, doc string) Key[string] {
	allowed := strings.Join(choices, ", ")
	if len(choices) == 1 {
		allowed += " alone"
	}
	return newKey(name, allowed, initial, doc, func(s string) (string, error) {
		i := slices.IndexFunc(choices, func(c string) bool { return strings.EqualFold(c, s) })
		if i < 0 {
			return "", errors.New("no such choice")
		}
		return choices[i], nil
	})
}

func textKey(name, initial, doc string) Key[string] {
	return newKey(name, "any text without control characters", initial, doc, func(s string) (string, error) {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return "", errors.New("a control character in it")
		}
		return s, nil
	})
}

func folderKey(name, initial, doc string) Key[string] {
	return newKey(name, "a folder", initial, doc, func(s string) (string, error) {
		if strings.IndexByte(s, 0) >= 0 {
			return "", errors.New("a zero byte in it")
		}
		return s, nil
	})
}

func masterKey(name, initial, doc string) Key[Master] {
	return newKey(name, "local, local[N], local[*], local[N,F] or local[*,F]", initial, doc, ParseMaster)
}

func within[T int | float64 | Bytes | time.Duration](v, lo, hi T) error {
	switch {
	case v < lo:
		return errors.New("too small")
	case v > hi:
		return errors.New("too large")
	}
	return nil
}
