// Package units writes sizes and times for people: short, and everywhere in the
// same way.
package units

import (
	"time"

	"github.com/dustin/go-humanize"
)

// Bytes is a size such as "3.1 MiB". What rounds to 1024 of a unit is 1.0 of the
// next, so that sizes side by side compare at a glance.
func Bytes[N ~int | ~int64 | ~uint64](n N) string {
	size := uint64(max(n, 0))
	for shift := 20; shift <= 60; shift += 10 {
		unit := uint64(1) << shift
		if size < unit && unit-size <= unit>>11 {
			size = unit
		}
	}
	return humanize.IBytes(size)
}

// Duration is a time with three significant digits.
func Duration(d time.Duration) string {
	unit := time.Duration(1)
	for d.Abs()/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
