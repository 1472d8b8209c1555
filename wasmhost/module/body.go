package module

import "fmt"

// body is a function body that has been decoded.
type body struct {
	start, code, end   int // in the file: local declarations, first instruction, end
	firstEdit, endEdit int // the body's edits, in parsed.edits
	locals             int // parameters included
	size               int // with safepoints, see rewriter
}

// decoder decodes the bodies of a module one after the other.
type decoder struct {
	*parsed
	mutable  int   // mutable globals, the safepoint counter included
	work     int64 // effort for all bodies so far
	heaviest int   // the function with the largest effort so far
	most     int64 // its effort

	// Of the body that is being decoded.
	*body
	index    int // of the function
	frames   []frame
	effort   effort
	cost     int   // instructions so far; see safepoint.go
	calls    int   // so far
	straight bool  // whether all instructions so far are run by every call
	lead     int   // the first loop, an index in edits, when it is reached straight from the entry, or -1
	constant int64 // what the last instruction puts on the stack if it is an i32.const, or negative
	dispatch dispatch
}

func (m *parsed) readBodies(r *reader) {
	n := r.count("function bodies", m.limits.Functions)
	if n > len(m.funcs)-m.importFuncs {
		r.fail(r.pos, "%d function bodies, but %d functions are declared", n, len(m.funcs)-m.importFuncs)
		return
	}
	m.bodies = make([]body, 0, n)
	d := decoder{parsed: m, mutable: 1}
	for _, g := range m.globals {
		if g.mutable {
			d.mutable++
		}
	}
	for i := 0; i < n; i++ {
		at := r.pos
		size := int64(r.u32("the length of a function body"))
		switch {
		case size > int64(r.left()):
			r.fail(at, "a body of %d bytes in the last %d of the section", size, r.left())
		case size > int64(m.limits.Body):
			r.fail(at, "a body of %d bytes, the limit is %d", size, m.limits.Body)
		}
		if r.err == nil {
			m.bodies = append(m.bodies, body{start: r.pos, end: r.pos + int(size), firstEdit: len(m.edits)})
			d.body, d.index = &m.bodies[i], m.importFuncs+i
			r.err = d.readBody()
			d.endEdit = len(m.edits)
			r.pos = d.end
		}
		if r.err != nil {
			if r.err.Function < 0 {
				r.err.Function = m.importFuncs + i
			}
			return
		}
	}
}

func (d *decoder) fault(at int, format string, args ...any) *FormatError {
	return &FormatError{Function: d.index, Offset: int64(at), Cause: fmt.Sprintf(format, args...)}
}

// readBody decodes one body. It checks what the compiler's type check could
// not: that no index is beyond its index space, which the rewriting extends;
// and that both read the same instructions, so that insertions cannot end up
// inside of one.
func (d *decoder) readBody() *FormatError {
	b := d.wasm[:d.end]
	i, err := d.readLocals()
	if err != nil {
		return err
	}
	d.code, d.cost, d.calls, d.straight, d.lead, d.constant = i, 0, 0, true, -1, -1
	d.dispatch = dispatch{loop: noLoop, targets: d.dispatch.targets}
	entry := d.edit(edit{at: uint32(i), kind: editCharge})
	d.frames = append(d.frames[:0], frame{op: opBlock, arity: len(d.types[d.funcs[d.index]].Results), join: unreachedJoin})
	d.effort.begin(d.locals)

	for i < len(b) {
		at := i
		op := b[i]
		i++
		d.cost++
		imm := immediates[op]
		constant := d.constant
		d.constant = -1
		if imm == immPrefix {
			if imm, i, err = d.prefixed(b, at, constant); err != nil {
				return err
			}
		}

		switch imm {
		case immDone:

		case immNone:
			if op == opReturn || op == opUnreachable {
				d.straight = false
				d.effort.leave()
			}

		case immControl:
			if i, err = d.control(b, i); err != nil {
				return err
			}

		case immLabel:
			if i = d.label(b, i); i < 0 {
				return d.fault(at, "a branch to a block that is not there")
			}
			d.straight = false
			if op == opBr {
				d.effort.leave()
			} else {
				d.effort.depth++
			}

		case immTable:
			var n uint32
			if n, i = u32(b, i); i < 0 || int64(n) > int64(len(b)-i) {
				return d.fault(at, "a br_table that is longer than the body")
			}
			if int64(n) > int64(d.limits.Targets) {
				return d.fault(at, "a br_table of %d targets, the limit is %d", n, d.limits.Targets)
			}
			first := i
			for k := uint32(0); k <= n; k++ {
				if i = d.label(b, i); i < 0 {
					return d.fault(at, "a branch to a block that is not there")
				}
			}
			d.dispatch.table(b, at, first, n, len(d.frames)-1)
			d.straight = false
			d.effort.add(int(n) * costEntry)
			d.effort.leave()

		case immCall:
			var g uint32
			if g, i = u32(b, i); i < 0 || int64(g) >= int64(len(d.funcs)) {
				return d.fault(at, "a call of a function that is not there")
			}
			d.straight = false
			d.calls++
			d.cost += callCost
			d.effort.pass(d.mutable + d.types[d.funcs[g]].arity())

		case immCallIndirect:
			var t, k uint32
			if t, i = u32(b, i); i < 0 || int64(t) >= int64(len(d.types)) {
				return d.fault(at, "a call of a type that is not there")
			}
			if k, i = u32(b, i); i < 0 || int64(k) >= int64(len(d.tables)) {
				return d.fault(at, "a call through a table that is not there")
			}
			d.straight = false
			d.calls++
			d.cost += callCost
			d.effort.pass(d.mutable + d.types[t].arity())

		case immLocal:
			var l uint32
			if l, i = u32(b, i); i < 0 || int64(l) >= int64(d.locals) {
				return d.fault(at, "a local that is not there")
			}
			if op == opLocalGet {
				d.effort.use(l)
				d.dispatch.get(l, at, i)
			} else {
				d.effort.set(l)
				if constant >= 0 {
					d.dispatch.set(l, uint32(constant), i)
				}
			}

		case immGlobal:
			var g uint32
			if g, i = u32(b, i); i < 0 || int64(g) >= int64(len(d.globals)) {
				return d.fault(at, "a global that is not there")
			}

		case immTableIndex:
			var t uint32
			if t, i = u32(b, i); i < 0 || int64(t) >= int64(len(d.tables)) {
				return d.fault(at, "a table that is not there")
			}
			if op == opTableSet && d.tableMutation == "" {
				d.tableMutation = fmt.Sprintf("table.set in function %d at offset %d", d.index, at)
			}

		case immMemory, immMemoryLane:
			var align uint32
			if align, i = u32(b, i); i >= 0 {
				_, i = u32(b, i)
			}
			if i < 0 || align >= 32 {
				return d.fault(at, "an address that is not one of a single 32-bit memory")
			}
			if imm == immMemoryLane {
				i++
			}

		case immZero:
			if i >= len(b) || b[i] != 0 {
				return d.fault(at, "an instruction for another memory than the first")
			}
			i++

		case immI32:
			if d.constant, i = signed(b, i, 32); i < 0 {
				return d.fault(at, "not a 32-bit constant")
			}

		case immI64:
			if i < len(b) && b[i] < 0x80 {
				i++
			} else if _, i = signed(b, i, 64); i < 0 {
				return d.fault(at, "not a 64-bit constant")
			}

		case immF32:
			i += 4
		case immF64:
			i += 8
		case immV128:
			i += 16
		case immLane:
			i++

		case immTypes:
			if i+2 > len(b) || b[i] != 1 || !ValueType(b[i+1]).valid() {
				return d.fault(at, "not a type of select that jobs have")
			}
			i += 2

		case immRefType:
			if i >= len(b) || !ValueType(b[i]).isReference() {
				return d.fault(at, "a reference type that jobs do not have")
			}
			i++

		case immFunction:
			var g uint32
			// The start function becomes an export, and thereby declared.
			if g, i = u32(b, i); i < 0 || int64(g) >= int64(len(d.declared)) || !d.declared[g] {
				return d.fault(at, "a reference to a function that is not declared")
			}

		case immUnsupported:
			i = d.skip(feature(op))

		default:
			return d.fault(at, "there is no instruction %#x", op)
		}
	}
	if i > d.end || len(d.frames) > 0 {
		return d.fault(d.end, "the body ends in the middle of an instruction or a block")
	}
	d.placeEntry(entry)
	return d.addWork()
}

// skip gives up on a body that uses what jobs do not have.
func (d *decoder) skip(feature string) int {
	d.unsupport(feature)
	d.frames = d.frames[:0]
	return d.end
}

// addWork holds the effort of the module, including the body that has been
// decoded, against the limit.
func (d *decoder) addWork() *FormatError {
	effort := d.effort.total()
	if effort > d.most {
		d.heaviest, d.most = d.index, effort
	}
	if d.work += effort; d.work <= d.limits.Work {
		return nil
	}
	return &FormatError{Function: d.heaviest, Offset: -1, Cause: "the module would take too long to compile; " +
		"this function has most of what makes it so: nested loops or long chains of blocks with many locals, " +
		"or calls with many globals"}
}

// prefixed reads the second part of the opcode at at. It says which immediate
// follows and where, immDone when that has been read as well.
func (d *decoder) prefixed(b []byte, at int, constant int64) (immediate, int, *FormatError) {
	code, i := u32(b, at+1)
	if i < 0 {
		return immInvalid, i, d.fault(at, "the body ends in the middle of an instruction")
	}
	if b[at] == opPrefixMisc {
		next, bulk, err := d.readMisc(at, i, code)
		if bulk && err == nil {
			d.bulk(at, next, code, constant)
		}
		return immDone, next, err
	}
	if code > 0xff {
		return immDone, d.skip("relaxed SIMD instructions"), nil
	}
	// wazero reads one byte of the opcode and takes the second one of a large
	// opcode, 0x01, for a nop: any longer form of the same number would be
	// instructions to it that were not checked here.
	if n := i - at - 1; n > 2 || n == 2 && code < 0x80 {
		return immInvalid, i, d.fault(at, "an opcode in an overlong form")
	}
	imm := simdImmediates[code]
	if imm == immInvalid {
		return imm, i, d.fault(at, "there is no instruction %#x %#x", opPrefixSIMD, code)
	}
	return imm, i, nil
}

func (d *decoder) readLocals() (int, *FormatError) {
	r := reader{wasm: d.wasm, pos: d.start, end: d.end}
	locals := int64(len(d.types[d.funcs[d.index]].Params))
	for n := r.count("declarations of locals", d.limits.Locals); n > 0 && r.err == nil; n-- {
		at := r.pos
		locals += int64(r.u32("the number of locals"))
		readValueType(&r)
		if locals > int64(d.limits.Locals) {
			r.fail(at, "more than %d locals; the limit keeps compiling short", d.limits.Locals)
		}
	}
	d.locals = int(locals)
	return r.pos, r.err
}

// readMisc reads the immediates, at i, of the instruction behind prefix 0xfc,
// and says whether it is one that works on many bytes of memory.
func (d *decoder) readMisc(at, i int, code uint32) (next int, bulk bool, err *FormatError) {
	r := reader{wasm: d.wasm, pos: i, end: d.end}
	below := func(what string, n int) {
		at := r.pos
		if v := r.u32(what); r.err == nil && int64(v) >= int64(n) {
			r.fail(at, "%s %d of %d", what, v, n)
		}
	}
	zero := func() {
		at := r.pos
		if r.byte("a memory") != 0 && r.err == nil {
			r.fail(at, "an instruction for another memory than the first")
		}
	}
	if name, ok := tableMutators[code]; ok && d.tableMutation == "" {
		d.tableMutation = fmt.Sprintf("%s in function %d at offset %d", name, d.index, at)
	}
	switch code {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case miscMemoryInit:
		below("data segment", max(d.dataCount, 0))
		zero()
		bulk = true
	case miscDataDrop:
		below("data segment", max(d.dataCount, 0))
	case miscMemoryCopy:
		zero()
		zero()
		bulk = true
	case miscMemoryFill:
		zero()
		bulk = true
	case miscTableInit:
		below("element segment", d.elements)
		below("table", len(d.tables))
	case miscElemDrop:
		below("element segment", d.elements)
	case miscTableCopy:
		below("table", len(d.tables))
		below("table", len(d.tables))
	case miscTableGrow, miscTableSize, miscTableFill:
		below("table", len(d.tables))
	default:
		r.fail(at, "there is no instruction %#x %#x", opPrefixMisc, code)
	}
	return r.pos, bulk, r.err
}
