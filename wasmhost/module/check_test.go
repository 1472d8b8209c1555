package module

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSmallestJobIsAccepted(t *testing.T) {
	p, err := Prepare(job().wasm(), jobOptions())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"quern:g0"}, p.Globals); diff != "" {
		t.Errorf("globals:\n%s", diff)
	}
	if p.Start != "" {
		t.Errorf("start function %q, want none", p.Start)
	}
}

// TestRefusals lists what is refused, and how.
func TestRefusals(t *testing.T) {
	spoil := func(f func(p *blueprint)) []byte {
		p := job()
		f(p)
		return p.wasm()
	}
	imports := func(i ImportInfo) []byte {
		return spoil(func(p *blueprint) { p.imports = append(p.imports, i) })
	}
	body := func(code ...byte) []byte {
		return spoil(func(p *blueprint) {
			p.table = []uint32{1}
			p.function(code, I32)
		})
	}
	for _, test := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"short", []byte("\x00as"), "cut off after 3 bytes, in the header"},
		{"no version", []byte("\x00asm\x01\x00"), "cut off after 6 bytes, in the header"},
		{"text", []byte("\n  (module)"), "text format (.wat)"},
		{"text comment", []byte(";; a module\n(module)"), "text format (.wat)"},
		{"native", []byte("\x7fELF\x02\x01\x01\x00\x00"), "native program"},
		{"something", []byte("#!/bin/sh\n"), "the file is not WebAssembly: it begins with 23 21 2f 62"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "is a component"},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), "version 2 of the binary format"},
		{"unknown section", append(job().wasm(), 99, 0), "no section with identifier 99"},
		{"section twice", append(job().wasm(), sectionType, 1, 0), "out of order or there twice"},
		{"cut off", job().wasm()[:60], "the file is cut off: section"},
		{"unknown function", imports(ImportInfo{Import: Import{"quern", "frobnicate"}}),
			"it imports quern.frobnicate () -> (), which this quern does not offer"},
		{"unknown module", imports(ImportInfo{Import: Import{"env", "f"}}),
			"it imports env.f () -> (), but a job may import from quern and wasi_snapshot_preview1 only"},
		{"javascript", imports(ImportInfo{Import: Import{"gojs", "f"}}), "GOOS=wasip1 instead of GOOS=js"},
		{"odd name", imports(ImportInfo{Import: Import{"quern", "\x1b[31m"}}), `quern."\x1b[31m"`},
		{"memory import", imports(ImportInfo{Import: Import{"env", "memory"}, Kind: KindMemory}),
			"it imports a memory, env.memory; a job imports functions only"},
		{"table import", imports(ImportInfo{Import: Import{"env", "t"}, Kind: KindTable}), "it imports a table, env.t"},
		{"global import", imports(ImportInfo{Import: Import{"env", "g"}, Kind: KindGlobal}), "it imports a global, env.g"},
		{"wrong type", imports(ImportInfo{Import: Import{"quern", "log"}}),
			"it imports quern.log with the type () -> (), but that is (i32, i32, i32) -> i64"},
		{"no yield", spoil(func(p *blueprint) {
			p.imports = nil
			p.exports = []ExportInfo{{Name: "_start", Index: 0}, {Name: "quern_task_1", Index: 1}}
		}), "it does not import quern.yield () -> ()"},
		{"no task", spoil(func(p *blueprint) { p.exports = p.exports[:2] }),
			"it does not export the function quern_task_1 (i32, i32, i32) -> i64"},
		{"other version", spoil(func(p *blueprint) { p.exports[2].Name = "quern_task_7" }),
			"it speaks version 7 of the job interface, this quern speaks version 1"},
		{"task of wrong type", spoil(func(p *blueprint) { p.exports[2].Index = 1 }),
			"its export quern_task_1 has the type () -> (), not (i32, i32, i32) -> i64"},
		{"task is a memory", spoil(func(p *blueprint) { p.exports[2] = ExportInfo{Name: "quern_task_1", Kind: KindMemory} }),
			"its export quern_task_1 is a memory, not a function"},
		{"reserved name", spoil(func(p *blueprint) { p.exports = append(p.exports, ExportInfo{Name: "quern:g0", Index: 1}) }),
			`it exports quern:g0; names that begin with "quern:" are reserved`},
		{"export twice", spoil(func(p *blueprint) { p.exports = append(p.exports, p.exports[0]) }), "export memory is there twice"},
		{"no memory", spoil(func(p *blueprint) { p.memory, p.exports = nil, p.exports[1:] }), "it has no memory"},
		{"large memory", spoil(func(p *blueprint) { p.memory = []uint32{17} }),
			"its memory begins with 17 pages (1 MiB), more than the limit of 16 pages (1 MiB)"},
		{"empty memory", spoil(func(p *blueprint) { p.memory = []uint32{0, 0} }), "its memory has a maximum of 0 pages"},
		{"several memories", slices.Concat(magic, version, []byte{sectionMemory, 5, 2, 0, 1, 0, 1}), "it has 2 memories"},
		{"shared memory", slices.Concat(magic, version, []byte{sectionMemory, 4, 1, 3, 1, 1}), "it uses threads"},
		{"64-bit memory", slices.Concat(magic, version, []byte{sectionMemory, 3, 1, 4, 1}), "it uses 64-bit memory"},
		{"reference global", spoil(func(p *blueprint) {
			p.globals = []globalPrint{{FuncRef, true, []byte{opRefNull, byte(FuncRef)}}}
		}), "its mutable global 0 (funcref) cannot be captured"},
		{"vector global", spoil(func(p *blueprint) {
			p.globals = []globalPrint{{V128, true, append([]byte{opPrefixSIMD, simdConst}, make([]byte, 16)...)}}
		}), "its mutable global 0 (v128) cannot be captured"},
		{"global of itself", spoil(func(p *blueprint) { p.globals = []globalPrint{{I32, true, []byte{opGlobalGet, 0}}} }),
			"global 0 is not defined before its use"},
		{"table.set", body(opI32Const, 0, opRefNull, byte(FuncRef), opTableSet, 0), "it changes a table while it runs (table.set in function 3"},
		{"table.grow", body(opRefNull, byte(FuncRef), opI32Const, 1, opPrefixMisc, miscTableGrow, 0, 0x1a), "table.grow in function 3"},
		{"table.fill", body(opI32Const, 0, opRefNull, byte(FuncRef), opI32Const, 0, opPrefixMisc, miscTableFill, 0), "table.fill in function 3"},
		{"table.copy", body(opI32Const, 0, opI32Const, 0, opI32Const, 0, opPrefixMisc, miscTableCopy, 0, 0), "table.copy in function 3"},
		{"table.init", body(opI32Const, 0, opI32Const, 0, opI32Const, 0, opPrefixMisc, miscTableInit, 0, 0), "table.init in function 3"},
		{"elem.drop", body(opPrefixMisc, miscElemDrop, 0), "elem.drop in function 3"},
		{"tail call", body(0x12, 0), "it uses tail calls"},
		{"exceptions", body(0x06, 0x40), "it uses exceptions"},
		{"atomics", body(opPrefixAtomic, 0x03, 0), "it uses threads (atomic instructions)"},
		{"relaxed SIMD", body(opPrefixSIMD, 0x80, 0x02), "it uses relaxed SIMD"},
		{"overlong SIMD", body(opPrefixSIMD, 0xce, 0x80, 0x00), "overlong"},
		{"unknown instruction", body(0xff), "there is no instruction 0xff"},
		{"unknown vector instruction", body(opPrefixSIMD, 0x9a, 0x01), "there is no instruction 0xfd 0x9a"},
		{"the counter", body(opGlobalGet, 0, 0x1a), "a global that is not there"},
		{"the scratch local", body(opLocalGet, 1, 0x1a), "a local that is not there"},
		{"unknown function call", body(opCall, 9), "a call of a function that is not there"},
		{"undeclared function", body(opRefFunc, 0, 0x1a), "a reference to a function that is not declared"},
		{"unknown branch", body(opBr, 1), "a branch to a block that is not there"},
		{"open block", body(opBlock, emptyBlock), "ends in the middle"},
		{"behind the end", body(opEnd, 0x01), "behind the end of the body"},
		{"data without count", body(opPrefixMisc, miscDataDrop, 0), "data segment 0 of 0"},
		{"locals", spoil(func(p *blueprint) { p.function(nil, slices.Repeat([]ValueType{I32}, 20_001)...) }), "more than 20000 locals"},
		{"large types", spoil(func(p *blueprint) {
			long := slices.Repeat([]ValueType{I64}, 200)
			p.types = append(p.types, slices.Repeat([]Signature{{Params: long, Results: long}}, 15_000)...)
		}), "types of more than 5000000 parameters and results in all"},
		{"huge br_table", body(opI32Const, 0, opBrTable, 0xff, 0xff, 0xff, 0x7f, 0), "a br_table that is longer than the body"},
		{"depth", body(slices.Repeat([]byte{opBlock, emptyBlock}, 20_001)...), "nested more than 20000 deep"},
		{"long vector", slices.Concat(magic, version, []byte{sectionType, 5, 0xff, 0xff, 0xff, 0xff, 0x0f}), "announces 4294967295 types in 0 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := Prepare(test.wasm, jobOptions())
			if err == nil {
				t.Fatalf("accepted: %+v", p.Info)
			}
			var format *FormatError
			var notJob *NotJobError
			if !errors.As(err, &format) && !errors.As(err, &notJob) {
				t.Errorf("error of type %T", err)
			}
			text := err.Error()
			if strings.Contains(text, "\n") {
				t.Errorf("several lines: %q", text)
			}
			if notJob != nil {
				text = strings.Join(notJob.Problems, "\n")
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("have %q\nwant %q", text, test.want)
			}
		})
	}
}

func TestOrdinaryProgramsAreToldOfTheSDK(t *testing.T) {
	run := Signature{}
	for name, c := range map[string]struct {
		imports []ImportInfo
		want    string
	}{
		"no imports": {nil, "not a Quern job: it does not use a Quern SDK ("},
		"WASI":       {[]ImportInfo{{Import: Import{"wasi_snapshot_preview1", "proc_exit"}, Type: run}}, "not a Quern job: it does not use a Quern SDK ("},
		"others":     {[]ImportInfo{{Import: Import{"env", "evil"}, Type: run}}, "not a Quern job: it imports env.evil"},
		"quern":      {[]ImportInfo{{Import: Import{"quern", "old"}, Type: run}}, "not a Quern job: it imports quern.old"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &blueprint{types: []Signature{run}, imports: c.imports}
			o := jobOptions()
			o.Imports["wasi_snapshot_preview1"] = map[string]Signature{"proc_exit": run}
			if _, err := Prepare(p.wasm(), o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

func TestInspectOfSomethingElse(t *testing.T) {
	p := &blueprint{
		types:   []Signature{{Params: []ValueType{F64}, Results: []ValueType{I32, I64}}},
		imports: []ImportInfo{{Import: Import{"env", "memory"}, Kind: KindMemory}},
		funcs:   []funcPrint{{code: []byte{opI32Const, 1, opI64Const, 2}}},
		exports: []ExportInfo{{Name: "f"}},
		trailing: slices.Concat(
			custom("name", "\x00\x07\x06gadget"),
			custom("producers", "\x01\x08language\x01\x02Go\x041.27")),
	}
	info, err := Inspect(p.wasm(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Name != "gadget" || len(info.Producers) != 1 || info.Producers[0] != "language Go 1.27" {
		t.Errorf("name %q, producers %q", info.Name, info.Producers)
	}
	if have := info.Exports[0].Type.String(); have != "(f64) -> (i32, i64)" {
		t.Errorf("export of type %s", have)
	}
	if info.Imports[0].String() != "env.memory" || info.Imports[0].Kind != KindMemory || !info.Memories[0].Imported {
		t.Errorf("imports %v, memories %v", info.Imports, info.Memories)
	}
	want := []string{
		"it imports a memory, env.memory; a job imports functions only and brings its own memory and tables",
		"it does not import quern.yield () -> (), through which the engine stops tasks; every SDK imports it",
		"it does not export the function _start () -> ()",
		"it does not export the function quern_task_1 (i32, i32, i32) -> i64",
	}
	if diff := cmp.Diff(want, info.JobProblems(jobOptions())); diff != "" {
		t.Errorf("problems (- want):\n%s", diff)
	}
	_, err = Prepare(p.wasm(), jobOptions())
	if want := "and 1 more reasons (quern inspect lists them)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestTruncation cuts a job at every byte.
func TestTruncation(t *testing.T) {
	p := job()
	p.table = []uint32{1, 2}
	p.globals = []globalPrint{{I64, true, []byte{opI64Const, 5}}, {F32, false, []byte{opF32Const, 0, 0, 0, 0}}}
	p.data = []string{"one", "two"}
	p.start = 1
	p.function([]byte{opLoop, emptyBlock, opBr, 0, opEnd}, I32, F64)
	wasm := p.wasm()
	if _, err := Prepare(wasm, jobOptions()); err != nil {
		t.Fatal(err)
	}
	for n := range wasm {
		if p, err := Prepare(wasm[:n], jobOptions()); err == nil {
			t.Errorf("cut after %d of %d bytes: accepted: %+v", n, len(wasm), p.Info)
		}
	}
}

func TestIntervalIsChecked(t *testing.T) {
	for _, interval := range []int32{-1, maxInterval + 1} {
		o := jobOptions()
		o.Interval = interval
		if _, err := Prepare(job().wasm(), o); err == nil || !strings.Contains(err.Error(), fmt.Sprint(interval)) {
			t.Errorf("interval %d: %v", interval, err)
		}
	}
}

// TestCompileBombs are a few kilobytes that keep the compiler busy for minutes
// or longer.
func TestCompileBombs(t *testing.T) {
	get := func(b []byte, local int) []byte { return appendU32(append(b, opLocalGet), uint32(local)) }
	set := func(b []byte, local int) []byte { return appendU32(append(b, opLocalSet), uint32(local)) }
	for _, test := range []struct {
		name  string
		body  func() []byte
		extra func(p *blueprint)
	}{
		{name: "nested loops with many locals", body: func() (b []byte) {
			for i := range 400 {
				b = set(get(append(b, opLoop, emptyBlock), i), i+1)
			}
			for range 400 {
				b = append(b, opI32Const, 0, opBrIf, 0, opEnd)
			}
			for i := range 1000 {
				b = append(get(b, i), 0x1a)
			}
			return b
		}},
		{name: "a long chain of loops", body: func() []byte {
			return slices.Repeat([]byte{opLoop, emptyBlock, opI32Const, 0, opBrIf, 0, opEnd}, 10_000)
		}},
		{name: "many branches with many locals", body: func() (b []byte) {
			b = slices.Repeat([]byte{opBlock, emptyBlock}, 2000)
			for i := range 2000 {
				b = appendU32(append(get(set(get(b, i), i+1), i), opBrIf), uint32(1999-i))
			}
			for i := range 2000 {
				b = set(get(append(b, opEnd), i), i+1)
			}
			for i := range 2000 {
				b = append(get(b, i), 0x1a)
			}
			return b
		}},
		{name: "deeply nested ifs", body: func() []byte {
			return append(slices.Repeat([]byte{opI32Const, 1, opIf, emptyBlock}, 19_990), slices.Repeat([]byte{opEnd}, 19_990)...)
		}},
		{name: "many branches to one block", body: func() []byte {
			b := appendU32([]byte{opBlock, emptyBlock, opI32Const, 0, opBrTable}, 99_999)
			return append(append(b, make([]byte, 100_000)...), opEnd)
		}},
		{name: "many calls with many globals", body: func() []byte { return slices.Repeat([]byte{opCall, 1}, 10_000) },
			extra: func(p *blueprint) {
				p.globals = slices.Repeat([]globalPrint{{I32, true, []byte{opI32Const, 0}}}, 9_000)
			}},
		{name: "many functions with many locals", body: func() []byte { return nil },
			extra: func(p *blueprint) {
				f := p.funcs[len(p.funcs)-1]
				p.funcs = append(p.funcs, slices.Repeat([]funcPrint{f}, 30_000)...)
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := job().function(test.body(), slices.Repeat([]ValueType{I32}, 2001)...)
			if test.extra != nil {
				test.extra(p)
			}
			_, err := Prepare(p.wasm(), jobOptions())
			if err == nil || !strings.Contains(err.Error(), "too long to compile") {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}
