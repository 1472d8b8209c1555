package units

import (
	"math"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 3287051: "3.1 MiB", 64 << 20: "64 MiB",
		1<<20 - 513: "1023 KiB", 1<<20 - 512: "1.0 MiB",
		1<<30 - 64<<10: "1.0 GiB", 1<<30 - 1<<20: "1023 MiB", 1<<30 - 1: "1.0 GiB", 1 << 30: "1.0 GiB", 1<<40 - 1: "1.0 TiB",
		math.MaxInt64: "8.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) is %q, want %q", n, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"0s": "0s", "7ns": "7ns", "474.452us": "474µs", "870.521us": "871µs", "999.6us": "1ms", "1.5ms": "1.5ms",
		"402.571596ms": "403ms", "1.2345s": "1.23s", "25.003924781s": "25s", "65.34s": "1m5.3s", "-402.571596ms": "-403ms",
		"2h3m4.5s": "2h3m0s",
	} {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Duration(d); got != want {
			t.Errorf("Duration(%s) is %q, want %q", text, got, want)
		}
	}
}
