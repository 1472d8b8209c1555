package module

func (m *parsed) readTypes(r *reader) {
	values := int64(0)
	for n := r.count("types", m.limits.Types); n > 0 && r.err == nil; n-- {
		at := r.pos
		switch form := r.byte("a type"); form {
		case functionType:
		case 0x4e, 0x4f, 0x50, 0x5e, 0x5f:
			r.fail(at, "the module uses garbage-collected types, which jobs do not have")
		default:
			r.fail(at, "%#x is not the beginning of a function type", form)
		}
		params := m.readValueTypes(r, "parameters")
		results := m.readValueTypes(r, "results")
		m.types = append(m.types, Signature{Params: params, Results: results})
		if values += int64(len(params) + len(results)); values*costTypeValue > m.limits.Work {
			r.fail(at, "types of more than %d parameters and results in all; the limit keeps compiling short", m.limits.Work/costTypeValue)
		}
	}
}

func (m *parsed) readValueTypes(r *reader, what string) []ValueType {
	n := r.count(what, m.limits.Values)
	if n == 0 {
		return nil
	}
	types := make([]ValueType, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		types = append(types, readValueType(r))
	}
	return types
}

func readValueType(r *reader) ValueType {
	at := r.pos
	t := ValueType(r.byte("a value type"))
	if r.err == nil && !t.valid() {
		if t == 0x63 || t == 0x64 || t >= 0x69 && t < FuncRef {
			r.fail(at, "value type %#x belongs to typed references, exceptions or garbage collection, "+
				"which jobs do not have", byte(t))
		} else {
			r.fail(at, "%#x is not a value type", byte(t))
		}
	}
	return t
}

func (m *parsed) readTypeIndex(r *reader) uint32 {
	at := r.pos
	t := r.u32("a type index")
	if r.err == nil && int64(t) >= int64(len(m.types)) {
		r.fail(at, "type %d of %d", t, len(m.types))
		return 0
	}
	return t
}

func (m *parsed) readImports(r *reader) {
	for n := r.count("imports", m.limits.Imports); n > 0 && r.err == nil; n-- {
		i := ImportInfo{Import: Import{Module: r.name("a module's name"), Name: r.name("an import's name")}}
		at := r.pos
		switch i.Kind = Kind(r.byte("an import")); i.Kind {
		case KindFunction:
			t := m.readTypeIndex(r)
			if r.err == nil {
				m.funcs = append(m.funcs, t)
				m.importFuncs++
				i.Type = m.types[t]
			}
		case KindTable:
			m.tables = append(m.tables, m.readTable(r))
			m.importTables++
		case KindMemory:
			mem := m.readMemory(r)
			mem.Imported = true
			m.memories = append(m.memories, mem)
		case KindGlobal:
			m.globals = append(m.globals, readGlobalType(r))
			m.importGlobal++
		case KindTag:
			m.unsupport("exceptions")
			r.byte("a tag")
			r.u32("a tag's type")
		default:
			r.fail(at, "%d is not a kind of import", i.Kind)
		}
		m.imports = append(m.imports, i)
	}
}

func (m *parsed) readFunctions(r *reader) {
	for n := r.count("functions", m.limits.Functions-len(m.funcs)); n > 0 && r.err == nil; n-- {
		m.funcs = append(m.funcs, m.readTypeIndex(r))
	}
}

func (m *parsed) readTables(r *reader) {
	for n := r.count("tables", m.limits.Tables); n > 0 && r.err == nil; n-- {
		m.tables = append(m.tables, m.readTable(r))
	}
}

func (m *parsed) readTable(r *reader) tableType {
	at := r.pos
	t := tableType{elem: ValueType(r.byte("a table"))}
	if r.err == nil && !t.elem.isReference() {
		r.fail(at, "%#x is not a type of a table's elements that jobs have", byte(t.elem))
	}
	var flags byte
	t.min, _, flags = readLimits(r, "a table")
	if r.err == nil && flags&^1 != 0 {
		r.fail(at, "a shared or 64-bit table, which jobs do not have")
	}
	total := t.min
	for _, other := range m.tables {
		total += other.min
	}
	if r.err == nil && total > uint64(m.limits.TableSize) {
		r.fail(at, "tables of %d elements, the limit is %d", total, m.limits.TableSize)
	}
	return t
}

// Flags of limits.
const (
	limitsMax    = 1 << 0
	limitsShared = 1 << 1
	limits64     = 1 << 2
)

func readLimits(r *reader, what string) (lo, hi uint64, flags byte) {
	at := r.pos
	flags = r.byte(what)
	if flags > limitsMax|limitsShared|limits64 {
		r.fail(at, "%#x are not flags of the limits of %s", flags, what)
		return 0, 0, 0
	}
	read := func() uint64 {
		if flags&limits64 == 0 {
			return uint64(r.u32("a limit"))
		}
		v, next := signed(r.wasm[:r.end], r.pos, 64)
		if next < 0 || v < 0 {
			r.fail(r.pos, "no 64-bit number where a limit should be")
			return 0
		}
		r.pos = next
		return uint64(v)
	}
	lo = read()
	if flags&limitsMax != 0 {
		hi = read()
		if r.err == nil && hi < lo {
			r.fail(at, "the minimum of %s, %d, is above the maximum, %d", what, lo, hi)
		}
	}
	return lo, hi, flags
}

func (m *parsed) readMemory(r *reader) MemoryInfo {
	at := r.pos
	lo, hi, flags := readLimits(r, "a memory")
	if flags&limitsShared != 0 {
		m.unsupport("threads (a shared memory)")
	}
	if flags&limits64 != 0 {
		m.unsupport("64-bit memory")
	} else if lo > maxPages || hi > maxPages {
		r.fail(at, "a memory of more than %d pages", maxPages)
	}
	return MemoryInfo{Min: lo, Max: hi, HasMax: flags&limitsMax != 0}
}

func readGlobalType(r *reader) globalType {
	g := globalType{typ: readValueType(r)}
	at := r.pos
	switch b := r.byte("a global"); b {
	case 0:
	case 1:
		g.mutable = true
	default:
		r.fail(at, "%#x does not say whether a global is mutable", b)
	}
	return g
}

func (m *parsed) readGlobals(r *reader) {
	for n := r.count("globals", m.limits.Globals); n > 0 && r.err == nil; n-- {
		g := readGlobalType(r)
		// Only earlier globals are visible: the counter that is added behind all
		// others must not become the initial value of one.
		m.readConstant(r)
		m.globals = append(m.globals, g)
	}
}

func (m *parsed) readExports(r *reader) {
	seen := map[string]bool{}
	for n := r.count("exports", m.limits.Exports); n > 0 && r.err == nil; n-- {
		at := r.pos
		e := ExportInfo{Name: r.name("an export's name")}
		if seen[e.Name] {
			r.fail(at, "export %s is there twice", show(e.Name))
		}
		seen[e.Name] = true
		at = r.pos
		e.Kind = Kind(r.byte("an export"))
		e.Index = r.u32("an export's index")
		var have int
		switch e.Kind {
		case KindFunction:
			have = len(m.funcs)
			if int64(e.Index) < int64(have) {
				e.Type = m.types[m.funcs[e.Index]]
				m.declare(e.Index)
			}
		case KindTable:
			have = len(m.tables)
		case KindMemory:
			have = len(m.memories)
		case KindGlobal:
			have = len(m.globals)
		case KindTag:
			m.unsupport("exceptions")
			continue
		default:
			r.fail(at, "%d is not a kind of export", e.Kind)
		}
		if r.err == nil && int64(e.Index) >= int64(have) {
			r.fail(at, "export %s is %s %d of %d", show(e.Name), e.Kind, e.Index, have)
		}
		m.exports = append(m.exports, e)
	}
}

func (m *parsed) readStart(r *reader) {
	at := r.pos
	f := m.readFunctionIndex(r)
	if r.err != nil {
		return
	}
	if t := m.types[m.funcs[f]]; len(t.Params)+len(t.Results) > 0 {
		r.fail(at, "the start function has type %s, not () -> ()", t)
	}
	m.startFunc = int(f)
}

func (m *parsed) readFunctionIndex(r *reader) uint32 {
	at := r.pos
	f := r.u32("a function index")
	if r.err == nil && int64(f) >= int64(len(m.funcs)) {
		r.fail(at, "function %d of %d", f, len(m.funcs))
		return 0
	}
	return f
}

// declare notes that a function may be referred to in bodies.
func (m *parsed) declare(f uint32) {
	if m.declared == nil {
		m.declared = make([]bool, len(m.funcs))
	}
	if int64(f) < int64(len(m.declared)) {
		m.declared[f] = true
	}
}

// readConstant reads a constant expression: one instruction and its end.
func (m *parsed) readConstant(r *reader) {
	at := r.pos
	switch op := r.byte("a constant expression"); op {
	case opI32Const:
		m.readSigned(r, 32)
	case opI64Const:
		m.readSigned(r, 64)
	case opF32Const:
		r.skip(4, "a number")
	case opF64Const:
		r.skip(8, "a number")
	case opPrefixSIMD:
		if r.byte("an instruction") != simdConst {
			r.fail(at, "not a constant")
		}
		r.skip(16, "a vector")
	case opGlobalGet:
		g := r.u32("a global's index")
		if r.err == nil && int64(g) >= int64(len(m.globals)) {
			r.fail(at, "global %d is not defined before its use in a constant", g)
		}
	case opRefNull:
		if !ValueType(r.byte("a reference type")).isReference() {
			r.fail(at, "a reference type that jobs do not have")
		}
	case opRefFunc:
		m.declare(m.readFunctionIndex(r))
	default:
		r.fail(at, "instruction %#x in a constant expression", op)
	}
	at = r.pos
	if r.byte("a constant expression") != opEnd {
		r.fail(at, "a constant expression of more than one instruction, which jobs do not have")
	}
}

func (m *parsed) readSigned(r *reader, bits int) {
	if r.err != nil {
		return
	}
	_, next := signed(r.wasm[:r.end], r.pos, bits)
	if next < 0 {
		r.fail(r.pos, "no %d-bit number where one should be", bits)
		return
	}
	r.pos = next
}

// readElements reads element segments in all eight forms: bit 0 of the flags
// says passive or declarative, bit 1 that a table or a kind is given (or, with
// bit 0, declarative), bit 2 that elements are expressions.
func (m *parsed) readElements(r *reader) {
	m.elements = r.count("element segments", m.limits.Segments)
	for n := m.elements; n > 0 && r.err == nil; n-- {
		at := r.pos
		flags := r.u32("an element segment")
		if flags > 7 {
			r.fail(at, "%d are not flags of an element segment", flags)
			return
		}
		if flags&1 == 0 {
			table := uint32(0)
			if flags&2 != 0 {
				table = r.u32("a table's index")
			}
			if int64(table) >= int64(len(m.tables)) {
				r.fail(at, "element segment of table %d of %d", table, len(m.tables))
			}
			m.readConstant(r)
		}
		if flags&3 != 0 {
			at := r.pos
			b := r.byte("an element segment")
			if flags&4 == 0 && b != 0 || flags&4 != 0 && !ValueType(b).isReference() {
				r.fail(at, "%#x is not a kind of element that jobs have", b)
			}
		}
		for k := r.count("elements", m.limits.TableSize); k > 0 && r.err == nil; k-- {
			if flags&4 != 0 {
				m.readConstant(r)
			} else {
				m.declare(m.readFunctionIndex(r))
			}
		}
	}
}

func (m *parsed) readData(r *reader) {
	m.data = r.count("data segments", m.limits.Segments)
	for n := m.data; n > 0 && r.err == nil; n-- {
		at := r.pos
		flags := r.u32("a data segment")
		if flags > 2 {
			r.fail(at, "%d are not flags of a data segment", flags)
			return
		}
		memory := uint32(0)
		if flags == 2 {
			memory = r.u32("a memory's index")
		}
		if flags != 1 {
			if int64(memory) >= int64(len(m.memories)) {
				r.fail(at, "data segment of memory %d of %d", memory, len(m.memories))
			}
			m.readConstant(r)
		}
		size := r.u32("the length of a data segment")
		if int64(size) > int64(r.left()) {
			r.fail(at, "a data segment of %d bytes in the last %d of the section", size, r.left())
			return
		}
		r.pos += int(size)
		m.dataBytes += int(size)
	}
}
