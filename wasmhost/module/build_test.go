package module

import "maps"

// blueprint is a module for a test. Functions are numbered imports first.
type blueprint struct {
	types    []Signature
	imports  []ImportInfo
	funcs    []funcPrint
	table    []uint32 // one funcref table with these functions
	memory   []uint32 // minimum and perhaps maximum pages; nil for none
	globals  []globalPrint
	exports  []ExportInfo
	start    int // function, 0 for none: tests do not start imports
	data     []string
	trailing []byte // sections behind all others
}

type funcPrint struct {
	typ    uint32
	locals []ValueType
	code   []byte // without the last end
}

type globalPrint struct {
	typ     ValueType
	mutable bool
	init    []byte // without end
}

// job is the smallest job, which each test spoils or extends. Its functions
// are the import quern.yield, _start, and quern_task_1.
func job() *blueprint {
	return &blueprint{
		types: []Signature{
			{},
			{Params: []ValueType{I32, I32, I32}, Results: []ValueType{I64}},
		},
		imports: []ImportInfo{{Import: Import{"quern", "yield"}, Kind: KindFunction}},
		funcs: []funcPrint{
			{typ: 0},
			{typ: 1, code: []byte{opI64Const, 0}},
		},
		memory: []uint32{1},
		exports: []ExportInfo{
			{Name: "memory", Kind: KindMemory, Index: 0},
			{Name: "_start", Kind: KindFunction, Index: 1},
			{Name: "quern_task_1", Kind: KindFunction, Index: 2},
		},
	}
}

// jobOptions are what the sandbox asks of a job, in short.
func jobOptions() Options {
	return Options{
		Imports: map[string]map[string]Signature{
			"quern":                  {"yield": {}, "log": {Params: []ValueType{I32, I32, I32}, Results: []ValueType{I64}}},
			"wasi_snapshot_preview1": {"proc_exit": {Params: []ValueType{I32}}},
		},
		Exports: map[string]Signature{
			"_start":       {},
			"quern_task_1": {Params: []ValueType{I32, I32, I32}, Results: []ValueType{I64}},
		},
		Yield:    Import{"quern", "yield"},
		Interval: 1000,
		MaxPages: 16,
	}
}

// allowing adds to the options whatever functions the module imports.
func allowing(i *Info, o Options) Options {
	o.Imports = maps.Clone(o.Imports)
	for _, imp := range i.Imports {
		if imp.Kind == KindFunction {
			functions := maps.Clone(o.Imports[imp.Module])
			if functions == nil {
				functions = map[string]Signature{}
			}
			functions[imp.Name] = imp.Type
			o.Imports[imp.Module] = functions
		}
	}
	return o
}

func (p *blueprint) function(code []byte, locals ...ValueType) *blueprint {
	p.funcs = append(p.funcs, funcPrint{locals: locals, code: code})
	return p
}

// wasm is the module's binary form.
func (p *blueprint) wasm() []byte {
	b := append(append([]byte{}, magic...), version...)
	b = vector(b, sectionType, len(p.types), func(i int, b []byte) []byte {
		return p.types[i].append(b)
	})
	b = vector(b, sectionImport, len(p.imports), func(i int, b []byte) []byte {
		imp := p.imports[i]
		b = append(name(name(b, imp.Module), imp.Name), byte(imp.Kind))
		switch imp.Kind {
		case KindFunction:
			for t, s := range p.types {
				if s.Equal(imp.Type) {
					return appendU32(b, uint32(t))
				}
			}
			panic("no such type")
		case KindTable:
			return append(b, byte(FuncRef), 0, 1)
		case KindMemory:
			return append(b, 0, 1)
		case KindGlobal:
			return append(b, byte(I32), 0)
		default:
			return append(b, 0, 0)
		}
	})
	b = vector(b, sectionFunction, len(p.funcs), func(i int, b []byte) []byte { return appendU32(b, p.funcs[i].typ) })
	if p.table != nil {
		b = vector(b, sectionTable, 1, func(_ int, b []byte) []byte {
			return appendU32(append(b, byte(FuncRef), 0), uint32(len(p.table)))
		})
	}
	if p.memory != nil {
		b = vector(b, sectionMemory, 1, func(_ int, b []byte) []byte {
			b = append(b, byte(len(p.memory)-1))
			for _, pages := range p.memory {
				b = appendU32(b, pages)
			}
			return b
		})
	}
	b = vector(b, sectionGlobal, len(p.globals), func(i int, b []byte) []byte {
		g := p.globals[i]
		b = append(b, byte(g.typ), 0)
		if g.mutable {
			b[len(b)-1] = 1
		}
		return append(append(b, g.init...), opEnd)
	})
	b = vector(b, sectionExport, len(p.exports), func(i int, b []byte) []byte {
		e := p.exports[i]
		return appendU32(append(name(b, e.Name), byte(e.Kind)), e.Index)
	})
	if p.start > 0 {
		b = appendU32(append(b, sectionStart, byte(sizeU32(uint32(p.start)))), uint32(p.start))
	}
	if p.table != nil {
		b = vector(b, sectionElement, 1, func(_ int, b []byte) []byte {
			b = appendU32(append(b, 0, opI32Const, 0, opEnd), uint32(len(p.table)))
			for _, f := range p.table {
				b = appendU32(b, f)
			}
			return b
		})
	}
	if len(p.data) > 0 {
		b = append(b, sectionDataCount, 1, byte(len(p.data)))
	}
	b = vector(b, sectionCode, len(p.funcs), func(i int, b []byte) []byte {
		f := p.funcs[i]
		var groups []byte
		n := uint32(0)
		for i := 0; i < len(f.locals); n++ {
			from := i
			for i < len(f.locals) && f.locals[i] == f.locals[from] {
				i++
			}
			groups = append(appendU32(groups, uint32(i-from)), byte(f.locals[from]))
		}
		body := append(appendU32(nil, n), groups...)
		body = append(append(body, f.code...), opEnd)
		return append(appendU32(b, uint32(len(body))), body...)
	})
	b = vector(b, sectionData, len(p.data), func(i int, b []byte) []byte { // passive
		return append(appendU32(append(b, 1), uint32(len(p.data[i]))), p.data[i]...)
	})
	return append(b, p.trailing...)
}

func name(b []byte, s string) []byte { return append(appendU32(b, uint32(len(s))), s...) }

func vector(b []byte, id byte, n int, item func(i int, b []byte) []byte) []byte {
	if n == 0 {
		return b
	}
	contents := appendU32(nil, uint32(n))
	for i := range n {
		contents = item(i, contents)
	}
	return append(appendU32(append(b, id), uint32(len(contents))), contents...)
}

func custom(title, contents string) []byte {
	body := append(name(nil, title), contents...)
	return append(appendU32([]byte{sectionCustom}, uint32(len(body))), body...)
}
