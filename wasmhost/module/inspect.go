package module

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what an import or an export is, in its binary encoding.
type Kind byte

const (
	KindFunction Kind = iota
	KindTable
	KindMemory
	KindGlobal
	KindTag
)

func (k Kind) String() string {
	switch k {
	case KindFunction:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	case KindTag:
		return "tag"
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

// ImportInfo is one import of a module.
type ImportInfo struct {
	Import
	Kind Kind
	Type Signature // of a function
}

// ExportInfo is one export of a module.
type ExportInfo struct {
	Name  string
	Kind  Kind
	Index uint32    // in the index space of its kind
	Type  Signature // of a function
}

// MemoryInfo is one memory of a module. Sizes are in pages of 64 KiB.
type MemoryInfo struct {
	Min, Max uint64
	HasMax   bool
	Imported bool
}

// maxPages is the largest size of a 32-bit memory, 4 GiB.
const maxPages = 1 << 16

// Info describes a module.
type Info struct {
	Name      string   // as the module calls itself, or ""
	Producers []string // "language Go", "processed-by clang 14.0.6", as the module says; not to be trusted

	Imports  []ImportInfo
	Exports  []ExportInfo
	Memories []MemoryInfo

	Types           int
	Functions       int // defined in the module
	Tables          int
	Globals         int
	MutableGlobals  int
	ElementSegments int
	DataSegments    int
	HasStart        bool // a start function, run when the module is instantiated

	Size        int // bytes of the whole file
	CodeBytes   int
	DataBytes   int // initial contents of the memory
	CustomBytes int // names, debugging information, ...

	unsupported   []string
	tableMutation string
	badGlobals    []string // mutable globals that cannot be captured
}

// Inspect parses a module, whether it is a job or not. The error is a
// *FormatError.
func Inspect(wasm []byte, l Limits) (*Info, error) {
	m, err := parse(wasm, l)
	if err != nil {
		return nil, err
	}
	return m.info(), nil
}

func (m *parsed) info() *Info {
	i := &Info{
		Imports:         m.imports,
		Exports:         m.exports,
		Memories:        m.memories,
		Types:           len(m.types),
		Functions:       len(m.bodies),
		Tables:          len(m.tables),
		Globals:         len(m.globals),
		ElementSegments: m.elements,
		DataSegments:    m.data,
		HasStart:        m.startFunc >= 0,
		Size:            len(m.wasm),
		CodeBytes:       m.codeBytes,
		DataBytes:       m.dataBytes,
		CustomBytes:     m.customBytes,
		unsupported:     m.unsupported,
		tableMutation:   m.tableMutation,
	}
	for index, g := range m.globals {
		if !g.mutable {
			continue
		}
		i.MutableGlobals++
		if g.typ == V128 || g.typ.isReference() {
			i.badGlobals = append(i.badGlobals, fmt.Sprintf("%d (%s)", index, g.typ))
		}
	}
	for _, s := range m.sections {
		switch s.name {
		case "name":
			i.Name = m.readModuleName(s)
		case "producers":
			i.Producers = m.readProducers(s)
		}
	}
	return i
}

// contents is a reader of what follows the name of a custom section.
func (m *parsed) contents(s section) reader {
	r := reader{wasm: m.wasm, pos: s.start, end: s.end}
	r.name("a section's name")
	return r
}

// readModuleName and readProducers are forgiving, as custom sections have no
// say in what a module means: what does not parse is left out.
func (m *parsed) readModuleName(s section) string {
	r := m.contents(s)
	if r.left() == 0 || r.byte("a subsection") != 0 {
		return ""
	}
	r.u32("the length of a subsection")
	return r.name("the module's name")
}

func (m *parsed) readProducers(s section) (all []string) {
	r := m.contents(s)
	for n := r.count("fields", 10); n > 0 && r.err == nil; n-- {
		field := r.name("a field")
		for k := r.count("values", 100); k > 0 && r.err == nil; k-- {
			name, version := r.name("a name"), r.name("a version")
			if r.err == nil {
				all = append(all, strings.TrimSpace(field+" "+name+" "+version))
			}
		}
	}
	return all
}

// importedFunction is the index of an imported function, or -1.
func (i *Info) importedFunction(want Import) int {
	index := 0
	for _, imp := range i.Imports {
		if imp.Kind != KindFunction {
			continue
		}
		if imp.Import == want {
			return index
		}
		index++
	}
	return -1
}

func (i *Info) export(name string) *ExportInfo {
	at := slices.IndexFunc(i.Exports, func(e ExportInfo) bool { return e.Name == name })
	if at < 0 {
		return nil
	}
	return &i.Exports[at]
}
