package module

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"
)

// FuzzPrepare: no input makes the package panic, and whatever it accepts is as
// valid after rewriting as it was before.
func FuzzPrepare(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add(job().wasm())
	rich := job().function([]byte{
		opLoop, emptyBlock, opI32Const, 0, opI32Const, 1, opI32Const, 2, opPrefixMisc, miscMemoryFill, 0,
		opBlock, emptyBlock, opI32Const, 1, opBrTable, 1, 0, 1, opEnd, opEnd,
		opPrefixSIMD, 0xce, 0x01,
	}, I64)
	rich.table = []uint32{1, 2}
	rich.globals = []globalPrint{{I64, true, []byte{opI64Const, 5}}}
	rich.start = 3
	f.Add(rich.wasm())
	for seed := range 3 {
		f.Add(rapid.Custom(func(t *rapid.T) []byte { return newGenerator(t).module() }).Example(seed))
	}
	scripts, err := filepath.Glob(filepath.Join(wazeroDir(f), "internal/integration_test/spectest/v2/testdata/*.0.wasm"))
	if err != nil || len(scripts) == 0 {
		f.Fatalf("no modules of the specification's tests: %v", err)
	}
	for _, path := range scripts {
		if wasm, err := os.ReadFile(path); err == nil && len(wasm) < 4000 {
			f.Add(wasm)
		}
	}

	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	compiles := func(wasm []byte) bool {
		m, err := runtime.CompileModule(ctx, wasm)
		if err != nil {
			return false
		}
		m.Close(ctx)
		return true
	}
	limits := Limits{Size: 1 << 20, Locals: 1000, Depth: 100, Work: 100_000, TableSize: 1000}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := bytes.Clone(wasm)
		o := jobOptions()
		o.Limits = limits
		o.Exports = nil
		info, err := Inspect(wasm, limits)
		if err != nil {
			if _, err := Prepare(wasm, o); err == nil {
				t.Fatal("Inspect fails, Prepare does not")
			}
			return
		}
		o = allowing(info, o)
		if info.importedFunction(o.Yield) < 0 {
			o.Interval = 0
		}
		p, err := Prepare(wasm, o)
		if problems := info.JobProblems(o); (err == nil) != (len(problems) == 0) {
			t.Fatalf("Prepare says %v, JobProblems %q", err, problems)
		}
		codes := map[string][]byte{}
		if err == nil {
			codes["Prepare"] = p.Code
		}
		// What the checks refuse is rewritten, too, as far as the rewriter can.
		if code, err := rewriteForSpec(wasm); err == nil {
			codes["rewriteForSpec"] = code
		}
		if !bytes.Equal(before, wasm) {
			t.Fatal("the input was changed")
		}
		valid := compiles(wasm)
		for by, code := range codes {
			if compiles(code) != valid {
				t.Fatalf("%s: valid before %v, after %v\n%x", by, valid, !valid, code)
			}
		}
	})
}
