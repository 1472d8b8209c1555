package module

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// BenchmarkPrepare is the whole pipeline of this package on a Go program.
func BenchmarkPrepare(b *testing.B) {
	wasm := buildGo(b, "job")
	o := benchOptions(b, wasm, 1<<16)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Prepare(wasm, o); err != nil {
			b.Fatal(err)
		}
	}
}

func benchOptions(b *testing.B, wasm []byte, interval int32) Options {
	info, err := Inspect(wasm, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	o := allowing(info, jobOptions())
	o.Exports, o.Interval, o.MaxPages = nil, interval, 0
	return o
}

// BenchmarkSafepoints runs kernels without and with safepoints in turns and
// reports the median time of each, what safepoints cost in percent, and the time
// from one call of the host to the next.
func BenchmarkSafepoints(b *testing.B) {
	languages := map[string][]byte{"go": buildGo(b, filepath.Join("kernels", "go"), "-buildmode=c-shared")}
	if clang, err := exec.LookPath("clang"); err == nil {
		languages["c"] = buildC(b, clang, filepath.Join("testdata", "kernels", "kernels.c"))
	} else {
		b.Log("without clang there are no figures for C")
	}
	for language, wasm := range languages {
		h := newHost(b, wazero.NewRuntimeConfig())
		yields := 0
		h.onYield = func() { yields++ }
		var modules [2]api.Module
		for i, interval := range []int32{0, 1 << 16} {
			modules[i] = h.instance(b, prepare(b, wasm, benchOptions(b, wasm, interval)).Code)
			if init := modules[i].ExportedFunction("_initialize"); init != nil {
				if _, err := init.Call(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		}
		for _, k := range []struct {
			name     string
			argument uint64
		}{{"scan", 200}, {"sort", 100_000}, {"fib", 27}, {"matmul", 160}, {"hash", 300_000}, {"copy", 1_000_000}, {"words", 2000}} {
			off, on := modules[0].ExportedFunction(k.name), modules[1].ExportedFunction(k.name)
			if off == nil {
				continue
			}
			b.Run(language+"/"+k.name, func(b *testing.B) {
				var times [2][]float64 // in nanoseconds
				run := func(i int) {
					start := time.Now()
					if _, err := []api.Function{off, on}[i].Call(context.Background(), k.argument); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], float64(time.Since(start)))
				}
				// The first calls make the heap, which belongs to neither.
				run(0)
				run(1)
				times = [2][]float64{}
				for b.Loop() {
					run(0)
					yields = 0
					run(1)
				}
				without, with := median(times[0]), median(times[1])
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(without, "off-ns")
				b.ReportMetric(with, "on-ns")
				b.ReportMetric(100*(with/without-1), "cost-%")
				b.ReportMetric(with/1e3/float64(max(yields, 1)), "yield-µs")
			})
		}
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// buildC compiles a C file of exported functions with wasi-libc.
func buildC(b *testing.B, clang, file string) []byte {
	out := filepath.Join(b.TempDir(), "out.wasm")
	cmd := exec.Command(clang, "--target=wasm32-wasi", "-O2", "-mbulk-memory", "-nostartfiles", "-Wl,--no-entry", "-o", out, file)
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("clang: %v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}
