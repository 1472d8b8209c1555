package module

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
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
// reports the shortest time of each, what safepoints cost in percent, and the
// time from one call of the host to the next.
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
				var best [2]time.Duration
				for b.Loop() {
					yields = 0
					for i, f := range []api.Function{off, on} {
						start := time.Now()
						if _, err := f.Call(context.Background(), k.argument); err != nil {
							b.Fatal(err)
						}
						if d := time.Since(start); best[i] == 0 || d < best[i] {
							best[i] = d
						}
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(best[0].Seconds()*1e3, "off-ms")
				b.ReportMetric(best[1].Seconds()*1e3, "on-ms")
				b.ReportMetric(100*(best[1].Seconds()/best[0].Seconds()-1), "cost-%")
				b.ReportMetric(best[1].Seconds()*1e6/float64(max(yields, 1)), "yield-µs")
			})
		}
	}
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
