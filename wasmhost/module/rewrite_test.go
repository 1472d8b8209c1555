package module

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// host runs modules with a yield function.
type host struct {
	wazero.Runtime
	onYield func()
}

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	ctx := context.Background()
	h := &host{Runtime: wazero.NewRuntimeWithConfig(ctx, config), onYield: func() {}}
	t.Cleanup(func() { h.Close(ctx) })
	b := h.NewHostModuleBuilder("quern").NewFunctionBuilder().WithFunc(func() { h.onYield() }).Export("yield")
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, h)
	return h
}

func (h *host) instance(t testing.TB, code []byte) api.Module {
	t.Helper()
	m, err := h.InstantiateWithConfig(context.Background(), code,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func prepare(t testing.TB, wasm []byte, o Options) *Prepared {
	t.Helper()
	p, err := Prepare(wasm, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNothingRunsWithoutSafepoints runs what never ends, until the host has
// been called a number of times.
func TestNothingRunsWithoutSafepoints(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(p *blueprint)
	}{
		{"an endless loop", func(p *blueprint) { p.function([]byte{opLoop, emptyBlock, opBr, 0, opEnd}) }},
		{"a loop that is left and entered", func(p *blueprint) {
			p.function([]byte{opLoop, emptyBlock, opLoop, emptyBlock, opEnd, opBr, 0, opEnd})
		}},
		{"a loop with a parameter", func(p *blueprint) {
			p.types = append(p.types, Signature{Params: []ValueType{I32}})
			p.function([]byte{opI32Const, 1, opLoop, 2, opBr, 0, opEnd})
		}},
		{"a loop with a result", func(p *blueprint) {
			p.function([]byte{opLoop, byte(I32), opBr, 0, opEnd, 0x1a})
		}},
		{"a loop that costs more than an interval", func(p *blueprint) {
			p.function(slices.Concat([]byte{opLoop, emptyBlock}, bytes.Repeat([]byte{opCall, 1}, 40_000), []byte{opBr, 0, opEnd}))
		}},
		{"a branch table back", func(p *blueprint) {
			p.function([]byte{opLoop, emptyBlock, opBlock, emptyBlock, opI32Const, 5, opBrTable, 1, 0, 1, opEnd, opEnd})
		}},
		{"endless recursion", func(p *blueprint) { p.function([]byte{opCall, 3}) }},
		{"endless recursion through a table", func(p *blueprint) {
			p.table = []uint32{3, 4}
			p.function([]byte{opI32Const, 1, opCallIndirect, 0, 0})
			p.function([]byte{opI32Const, 0, opCallIndirect, 0, 0})
		}},
		{"endless recursion beside a loop", func(p *blueprint) {
			p.function([]byte{opI32Const, 0, opIf, emptyBlock, opLoop, emptyBlock, opEnd, opEnd, opCall, 3})
		}},
		{"a tree of calls", func(p *blueprint) { // 2^60 calls without a loop
			for i := range 60 {
				p.function([]byte{opCall, byte(4 + i), opCall, byte(4 + i)})
			}
			p.function(nil)
		}},
		{"a chain of leaves", func(p *blueprint) { // 32^8 calls of a function without a safepoint
			for i := range 8 {
				p.function(bytes.Repeat([]byte{opCall, byte(4 + i)}, 32))
			}
			p.function([]byte{0x01, 0x01, 0x01})
		}},
		{"huge fills", func(p *blueprint) {
			p.function(bytes.Repeat([]byte{opI32Const, 0, opI32Const, 0, opI32Const, 0x80, 0x80, 0x04, opPrefixMisc, miscMemoryFill, 0}, 64))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := job()
			test.build(b)
			b.exports = append(b.exports, ExportInfo{Name: "run", Index: 3})
			p := prepare(t, b.wasm(), jobOptions())
			h := newHost(t, wazero.NewRuntimeConfig())
			m := h.instance(t, p.Code)
			left := 50
			h.onYield = func() {
				if left--; left == 0 {
					panic("stopped")
				}
			}
			_, err := m.ExportedFunction("run").Call(context.Background())
			if err == nil || !bytes.Contains([]byte(err.Error()), []byte("stopped")) {
				t.Errorf("not stopped, %d safepoints to go: %v", left, err)
			}
		})
	}
}

// TestSafepointsComeAtTheInterval counts rounds of a loop between safepoints.
func TestSafepointsComeAtTheInterval(t *testing.T) {
	b := job()
	// for local0 = 100000; --local0 != 0; {}
	b.function([]byte{opI32Const, 0xa0, 0x8d, 0x06, opLocalSet, 0, opLoop, emptyBlock,
		opLocalGet, 0, opI32Const, 1, opI32Sub, opLocalTee, 0, opBrIf, 0, opEnd}, I32)
	b.exports = append(b.exports, ExportInfo{Name: "run", Index: 3})
	for interval, want := range map[int32]int{0: 0, 1: 100_000, 10: 10_000, 1000: 100, 100_001: 0} {
		o := jobOptions()
		o.Interval = interval
		p := prepare(t, b.wasm(), o)
		h := newHost(t, wazero.NewRuntimeConfig())
		have := 0
		h.onYield = func() { have++ }
		if _, err := h.instance(t, p.Code).ExportedFunction("run").Call(context.Background()); err != nil {
			t.Fatal(err)
		}
		if have != want {
			t.Errorf("interval %d: %d safepoints in 100000 rounds, want %d", interval, have, want)
		}
	}
}

// TestWorkIsCharged counts safepoints of a hundred calls, in a loop, of functions
// of 20,000 instructions.
func TestWorkIsCharged(t *testing.T) {
	work := bytes.Repeat([]byte{opI32Const, 0, opDrop}, 10_000)
	for name, code := range map[string][]byte{
		"a leaf":                   work,
		"beside a loop":            slices.Concat([]byte{opI32Const, 0, opIf, emptyBlock, opLoop, emptyBlock, opEnd, opEnd}, work),
		"behind a loop":            slices.Concat([]byte{opLoop, emptyBlock, opEnd}, work),
		"in a loop":                slices.Concat([]byte{opLoop, emptyBlock}, work, []byte{opEnd}),
		"in a loop with a result":  slices.Concat([]byte{opLoop, byte(I32)}, work, []byte{opI32Const, 1, opEnd, opDrop}),
		"in a loop with parameter": slices.Concat([]byte{opI32Const, 0, opLoop, 2}, work, []byte{opDrop, opEnd}),
	} {
		b := job()
		b.types = append(b.types, Signature{Params: []ValueType{I32}})
		b.function(code)
		b.function([]byte{opI32Const, 0xe4, 0, opLocalSet, 0, opLoop, emptyBlock, opCall, 3,
			opLocalGet, 0, opI32Const, 1, opI32Sub, opLocalTee, 0, opBrIf, 0, opEnd}, I32)
		b.exports = append(b.exports, ExportInfo{Name: "run", Index: 4})
		o := jobOptions()
		o.Interval = 100
		h := newHost(t, wazero.NewRuntimeConfig())
		have := 0
		h.onYield = func() { have++ }
		if _, err := h.instance(t, prepare(t, b.wasm(), o).Code).ExportedFunction("run").Call(context.Background()); err != nil {
			t.Fatal(err)
		}
		// Each function is charged 40 rounds, so the host is called at every third, or at
		// two of three where the loop in it is charged as well.
		if have < 33 || have > 67 {
			t.Errorf("%s: %d safepoints, want 33 to 67", name, have)
		}
	}
}

// TestLeadLoopGoesOn: a loop that also charges for the entry, of a body just
// beyond a round, goes on even if each charge uses up the interval.
func TestLeadLoopGoesOn(t *testing.T) {
	for size := 480; size < 560; size++ {
		b := job()
		nops := bytes.Repeat([]byte{opI32Const, 0, opDrop}, size/2)
		b.function(slices.Concat([]byte{opI32Const, 5, opLocalSet, 0, opLoop, emptyBlock}, nops,
			[]byte{opLocalGet, 0, opI32Const, 1, opI32Sub, opLocalTee, 0, opBrIf, 0, opEnd, opI32Const, 0, opDrop}), I32)
		b.exports = append(b.exports, ExportInfo{Name: "run", Index: 3})
		o := jobOptions()
		o.Interval = 1
		h := newHost(t, wazero.NewRuntimeConfigInterpreter())
		have := 0
		h.onYield = func() {
			if have++; have > 100 {
				panic("the loop does not go on")
			}
		}
		if _, err := h.instance(t, prepare(t, b.wasm(), o).Code).ExportedFunction("run").Call(context.Background()); err != nil {
			t.Fatalf("%d instructions: %v", size, err)
		}
		if have != 5 {
			t.Fatalf("%d instructions: %d safepoints, want 5", size, have)
		}
	}
}

func TestGlobalsAreExportedInOrder(t *testing.T) {
	b := job()
	b.globals = []globalPrint{
		{I32, true, []byte{opI32Const, 11}},
		{I64, false, []byte{opI64Const, 22}},
		{I64, true, []byte{opI64Const, 33}},
		{F64, true, append([]byte{opF64Const}, make([]byte, 8)...)},
	}
	b.exports = append(b.exports, ExportInfo{Name: "sp", Kind: KindGlobal, Index: 0})
	o := jobOptions()
	p := prepare(t, b.wasm(), o)
	if diff := cmp.Diff([]string{"quern:g0", "quern:g1", "quern:g2", "quern:g3"}, p.Globals); diff != "" {
		t.Fatal(diff)
	}
	m := newHost(t, wazero.NewRuntimeConfig()).instance(t, p.Code)
	var have []uint64
	for _, name := range p.Globals {
		g, ok := m.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			t.Fatalf("%s is not a mutable global", name)
		}
		have = append(have, g.Get())
	}
	if diff := cmp.Diff([]uint64{11, 33, 0, uint64(o.Interval)}, have); diff != "" {
		t.Error(diff)
	}
}

func TestStartIsExportedNotRun(t *testing.T) {
	b := job()
	b.globals = []globalPrint{{I32, true, []byte{opI32Const, 0}}}
	b.function([]byte{opI32Const, 7, opGlobalSet, 0})
	b.start = 3
	p := prepare(t, b.wasm(), jobOptions())
	if !p.Info.HasStart || p.Start == "" {
		t.Fatalf("start %q", p.Start)
	}
	m := newHost(t, wazero.NewRuntimeConfig()).instance(t, p.Code)
	g := m.ExportedGlobal(p.Globals[0])
	if g.Get() != 0 {
		t.Fatal("instantiation ran the start function")
	}
	if _, err := m.ExportedFunction(p.Start).Call(context.Background()); err != nil || g.Get() != 7 {
		t.Errorf("after the start function: %d, %v", g.Get(), err)
	}
}

func TestMemoryMaximum(t *testing.T) {
	for _, test := range []struct {
		memory []uint32
		limit  uint32
		want   uint64
	}{
		{[]uint32{1}, 16, 16},
		{[]uint32{1, 8}, 16, 8},
		{[]uint32{1, 100}, 16, 16},
		{[]uint32{1, 100}, 0, 100},
		{[]uint32{1}, 0, 65536},
	} {
		b := job()
		b.memory = test.memory
		o := jobOptions()
		o.MaxPages = test.limit
		info, err := Inspect(prepare(t, b.wasm(), o).Code, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if have := info.Memories[0]; !have.HasMax || have.Max != test.want || have.Min != 1 {
			t.Errorf("memory %v with the limit %d: %+v, want a maximum of %d", test.memory, test.limit, have, test.want)
		}
	}
}

// TestCustomSections: names stay; debugging information, whose offsets have
// become wrong, goes.
func TestCustomSections(t *testing.T) {
	b := job()
	names, other := custom("name", "\x00\x02\x01j"), custom("mine", "data")
	b.trailing = bytes.Join([][]byte{custom(".debug_info", "offsets"), names, other}, nil)
	code := prepare(t, b.wasm(), jobOptions()).Code
	if !bytes.Contains(code, names) || !bytes.Contains(code, other) {
		t.Error("custom sections are missing")
	}
	if bytes.Contains(code, []byte(".debug_info")) {
		t.Error("debugging information is still there")
	}
}

// buildGo compiles a Go program in testdata for wasip1.
func buildGo(t testing.TB, dir string, flags ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.wasm")
	cmd := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), ".")...)
	cmd.Dir = filepath.Join("testdata", dir)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestGoJob runs a real Go program, goroutines, maps, panics and all, as it is
// and rewritten.
func TestGoJob(t *testing.T) {
	t.Parallel()
	wasm := buildGo(t, "job")
	info, err := Inspect(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	o := allowing(info, jobOptions())
	o.MaxPages = 4096
	if problems := info.JobProblems(o); len(problems) > 0 {
		t.Fatalf("not a job: %v", problems)
	}
	p := prepare(t, wasm, o)
	h := newHost(t, wazero.NewRuntimeConfig())
	yields := 0
	h.onYield = func() { yields++ }
	run := func(code []byte) string {
		var out bytes.Buffer
		_, err := h.InstantiateWithConfig(context.Background(), code,
			wazero.NewModuleConfig().WithName("").WithArgs("job").WithStdout(&out).WithStderr(&out))
		if exit, ok := err.(*sys.ExitError); err != nil && (!ok || exit.ExitCode() != 0) {
			t.Fatalf("%v\n%s", err, out.String())
		}
		return out.String()
	}
	want := run(wasm)
	if yields != 0 {
		t.Fatal("the original calls the host's safepoint")
	}
	have := run(p.Code)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("output (- original):\n%s", diff)
	}
	if want := fmt.Sprintln("the 20000"); !bytes.Contains([]byte(have), []byte(want)) {
		t.Errorf("output %s, want %s in it", have, want)
	}
	if yields < 1000 {
		t.Errorf("%d safepoints", yields)
	}
}
