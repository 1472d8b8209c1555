package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadBenchmark(t *testing.T) {
	values := make(map[string]sample)
	for _, line := range []string{
		"goos: linux",
		"BenchmarkTaskGo-2   \t  269030\t      4190 ns/op\t     322 B/op\t       4 allocs/op",
		"BenchmarkTaskGo-2   \t  269030\t      4200.5 ns/op",
		"BenchmarkSafepoints/c/sort-16         \t      24\t 2.5 cost-%\t 7e+07 off-ns",
		"BenchmarkNothing-2",
		"PASS",
	} {
		readBenchmark(line, values)
	}
	want := map[string]sample{
		"TaskGo ns/op": {4190, 4200.5}, "TaskGo B/op": {322}, "TaskGo allocs/op": {4},
		"Safepoints/c/sort cost-%": {2.5}, "Safepoints/c/sort off-ns": {7e7},
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}

func TestNanoseconds(t *testing.T) {
	for n, want := range map[float64]string{
		0.5: "0.5 ns", 999.4: "999 ns", 999.6: "1 µs", 12_340: "12.3 µs", 999_600: "1 ms", 2.345e9: "2.35 s", 123e9: "123 s",
	} {
		if got := nanoseconds(n); got != want {
			t.Errorf("%v ns is shown as %s, want %s", n, got, want)
		}
	}
}
