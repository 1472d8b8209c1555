package module

import (
	"bytes"
	"fmt"
)

// Identifiers of sections.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// sectionNames and sectionRanks are by identifier. Ranks are the order in
// which sections stand in a file, which is not that of their identifiers.
var (
	sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export",
		"start", "element", "code", "data", "data count", "tag"}
	sectionRanks = [...]int{0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 11, 6}
)

// section is one section of a file; the bytes from start to end are its
// contents, those from head to start are its identifier and its length.
type section struct {
	id               byte
	head, start, end int
	name             string // of a custom section
}

// parsed is a module that has been read. Indices are those of the index spaces,
// imports first.
type parsed struct {
	wasm     []byte
	limits   Limits
	sections []section

	types        []Signature
	imports      []ImportInfo
	funcs        []uint32 // types
	importFuncs  int
	declared     []bool // functions that are named outside of bodies; nil for none
	tables       []tableType
	importTables int
	memories     []MemoryInfo
	globals      []globalType
	importGlobal int
	exports      []ExportInfo
	startFunc    int // -1 for none
	elements     int
	dataCount    int // -1 without the section
	data         int
	bodies       []body
	edits        []edit        // of all bodies, ascending
	needs        [helpers]bool // functions that the edits call

	// Functions that declare or hold what a job must not have, for messages.
	unsupported   []string // features, each once
	tableMutation string   // the first instruction that changes a table and where, or ""
	codeBytes     int
	dataBytes     int
	customBytes   int
}

type tableType struct {
	elem ValueType
	min  uint64
}

type globalType struct {
	typ     ValueType
	mutable bool
}

// parse reads a module. Every function body is decoded.
func parse(wasm []byte, l Limits) (*parsed, error) {
	m := &parsed{wasm: wasm, limits: l.withDefaults(), startFunc: -1, dataCount: -1}
	if err := m.readHeader(); err != nil {
		return nil, err
	}
	if err := m.readSections(); err != nil {
		return nil, err
	}
	return m, nil
}

var (
	magic   = []byte("\x00asm")
	version = []byte{1, 0, 0, 0}
)

func notModule(format string, args ...any) *FormatError {
	return &FormatError{Function: -1, Offset: -1, Cause: fmt.Sprintf(format, args...)}
}

// readHeader tells a module from what people give instead of one.
func (m *parsed) readHeader() error {
	b := m.wasm
	if int64(len(b)) > m.limits.Size {
		return notModule("the file has %d bytes, the limit is %d", len(b), m.limits.Size)
	}
	if len(b) == 0 {
		return notModule("the file is empty")
	}
	if !bytes.HasPrefix(b, magic) {
		if len(b) < len(magic) && bytes.HasPrefix(magic, b) {
			return notModule("the file is cut off after %d bytes, in the header", len(b))
		}
		text := bytes.TrimLeft(b, " \t\r\n")
		switch {
		case bytes.HasPrefix(text, []byte("(")) || bytes.HasPrefix(text, []byte(";;")):
			return notModule("the file is in the text format (.wat); convert it to the binary one, for example with wat2wasm")
		case bytes.HasPrefix(b, []byte("\x7fELF")), bytes.HasPrefix(b, []byte("MZ")),
			bytes.HasPrefix(b, []byte("\xcf\xfa\xed\xfe")):
			return notModule("the file is a native program; build the job for WebAssembly (GOOS=wasip1 GOARCH=wasm)")
		}
		return notModule(`the file is not WebAssembly: it begins with % x, not 00 61 73 6d ("\0asm")`, b[:min(4, len(b))])
	}
	if len(b) < 8 {
		return notModule("the file is cut off after %d bytes, in the header", len(b))
	}
	if v := b[4:8]; !bytes.Equal(v, version) {
		if v[2] == 1 && v[3] == 0 {
			return notModule("the file is a component; a job is a core module: build for wasip1, not wasip2")
		}
		return notModule("version %d of the binary format; only version 1 is known",
			uint32(v[0])|uint32(v[1])<<8|uint32(v[2])<<16|uint32(v[3])<<24)
	}
	return nil
}

func (m *parsed) readSections() error {
	r := reader{wasm: m.wasm, pos: 8, end: len(m.wasm)}
	rank := 0
	for r.left() > 0 {
		s := section{head: r.pos}
		s.id = r.byte("a section")
		if int(s.id) >= len(sectionNames) {
			r.fail(s.head, "there is no section with identifier %d", s.id)
			return r.err
		}
		length := r.u32("the length of a section")
		if r.err != nil {
			r.err = &FormatError{Function: -1, Offset: int64(s.head),
				Cause: fmt.Sprintf("the head of section %s is damaged or the file is cut off here", sectionNames[s.id])}
			return r.err
		}
		if int64(length) > int64(r.left()) {
			r.fail(s.head, "the file is cut off: section %s is to have %d bytes, but the file ends after %d of them",
				sectionNames[s.id], length, r.left())
			return r.err
		}
		s.start, s.end = r.pos, r.pos+int(length)
		if s.id != sectionCustom {
			if sectionRanks[s.id] <= rank {
				r.fail(s.head, "section %s is out of order or there twice", sectionNames[s.id])
				return r.err
			}
			rank = sectionRanks[s.id]
		}
		if err := m.readSection(&s); err != nil {
			return err
		}
		m.sections = append(m.sections, s)
		r.pos = s.end
	}
	if n := len(m.funcs) - m.importFuncs; n != len(m.bodies) {
		return notModule("%d functions are declared, but there are bodies of %d: the file is damaged or cut off",
			n, len(m.bodies))
	}
	if m.dataCount >= 0 && m.dataCount != m.data {
		return notModule("%d data segments are announced, but there are %d: the file is damaged or cut off",
			m.dataCount, m.data)
	}
	return nil
}

func (m *parsed) readSection(s *section) error {
	r := &reader{wasm: m.wasm, pos: s.start, end: s.end}
	switch s.id {
	case sectionCustom:
		s.name = r.name("the name of a custom section")
		m.customBytes += s.end - s.head
		if r.err == nil {
			return nil // the contents are not read
		}
	case sectionType:
		m.readTypes(r)
	case sectionImport:
		m.readImports(r)
	case sectionFunction:
		m.readFunctions(r)
	case sectionTable:
		m.readTables(r)
	case sectionMemory:
		for n := r.count("memories", 100); n > 0 && r.err == nil; n-- {
			m.memories = append(m.memories, m.readMemory(r))
		}
	case sectionTag:
		m.unsupport("exceptions")
		return nil
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		m.readExports(r)
	case sectionStart:
		m.readStart(r)
	case sectionElement:
		m.readElements(r)
	case sectionDataCount:
		m.dataCount = int(r.u32("the number of data segments"))
	case sectionCode:
		m.codeBytes = s.end - s.start
		m.readBodies(r)
	case sectionData:
		m.readData(r)
	}
	if r.err == nil && r.left() > 0 {
		r.fail(r.pos, "%d bytes are left over at its end", r.left())
	}
	if r.err != nil {
		r.err.Section = sectionNames[s.id]
		return r.err
	}
	return nil
}

// unsupport notes that the module uses a feature that jobs do not have.
func (m *parsed) unsupport(feature string) {
	for _, f := range m.unsupported {
		if f == feature {
			return
		}
	}
	m.unsupported = append(m.unsupported, feature)
}
