package conf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size in bytes. It prints in the largest unit that divides it, in
// the form that [ParseBytes] reads.
type Bytes int64

const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

func (b Bytes) String() string {
	switch {
	case b == 0:
		return "0"
	case b%TiB == 0:
		return fmt.Sprintf("%dt", b/TiB)
	case b%GiB == 0:
		return fmt.Sprintf("%dg", b/GiB)
	case b%MiB == 0:
		return fmt.Sprintf("%dm", b/MiB)
	case b%KiB == 0:
		return fmt.Sprintf("%dk", b/KiB)
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads a size: a whole number and a unit of Spark's (b, k or kb, m
// or mb, g or gb, t or tb; powers of 1024), in upper or lower case. A number
// alone is bytes.
func ParseBytes(s string) (Bytes, error) {
	n, unit, err := number(s, "a size", "512m")
	if err != nil {
		return 0, err
	}
	var factor Bytes
	switch strings.ToLower(unit) {
	case "", "b":
		factor = 1
	case "k", "kb":
		factor = KiB
	case "m", "mb":
		factor = MiB
	case "g", "gb":
		factor = GiB
	case "t", "tb":
		factor = TiB
	default:
		return 0, fmt.Errorf("%q is no unit of size (b, k, m, g, t)", unit)
	}
	if n > math.MaxInt64/int64(factor) {
		return 0, errors.New("too large")
	}
	return Bytes(n) * factor, nil
}

// ParseDuration reads a duration: a whole number and a unit of Spark's (us,
// ms, s, m or min, h, d).
func ParseDuration(s string) (time.Duration, error) {
	n, unit, err := number(s, "a duration", "500ms")
	if err != nil {
		return 0, err
	}
	var factor time.Duration
	switch strings.ToLower(unit) {
	case "us":
		factor = time.Microsecond
	case "ms":
		factor = time.Millisecond
	case "s":
		factor = time.Second
	case "m", "min":
		factor = time.Minute
	case "h":
		factor = time.Hour
	case "d":
		factor = 24 * time.Hour
	case "":
		return 0, errors.New("no unit (us, ms, s, m, h, d)")
	default:
		return 0, fmt.Errorf("%q is no unit of time (us, ms, s, m, h, d)", unit)
	}
	if n > math.MaxInt64/int64(factor) {
		return 0, errors.New("too large")
	}
	return time.Duration(n) * factor, nil
}

// durationText is a duration in the form that [ParseDuration] reads.
func durationText(d time.Duration) string {
	for _, u := range []struct {
		unit string
		d    time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if d >= u.d && d%u.d == 0 {
			return fmt.Sprintf("%d%s", d/u.d, u.unit)
		}
	}
	return fmt.Sprintf("%dus", d.Microseconds())
}

// number splits a value into its whole number and its unit.
func number(s, what, example string) (int64, string, error) {
	end := len(s) - len(strings.TrimLeft(s, "0123456789"))
	digits, unit := s[:end], strings.TrimSpace(s[end:])
	switch {
	case strings.HasPrefix(unit, "-") && digits == "":
		return 0, "", errors.New("negative")
	case digits == "":
		return 0, "", fmt.Errorf("not %s", what)
	case strings.HasPrefix(unit, "."):
		return 0, "", fmt.Errorf("a fraction; use a smaller unit, such as %s", example)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, "", errors.New("too large")
	}
	return n, unit, nil
}
