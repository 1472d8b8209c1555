package module

import "fmt"

// body is a function body that has been decoded.
type body struct {
	start, code, end int  // in the file: local declarations, first instruction, end
	edits, editsEnd  int  // the body's, in parsed.edits
	locals           int  // parameters included
	scratch          bool // safepoints need one more local, see edit
	size             int  // with safepoints, see rewriter
}

// frame is a block that is open.
type frame struct {
	op    byte
	arity int // values that a branch to the block passes
	added int // blocks that the rewriting adds around this one and those outside
	edit  int // of a loop, index in parsed.edits
	cost  int // of the body where the block begins

	// For effort: the dominator depth of the first of the branches to the block's
	// end, that of the block's beginning, and whether that cannot be reached.
	join, depth int
	dead        bool
}

// decoder decodes the bodies of a module one after the other.
type decoder struct {
	*parsed
	frames  []frame
	effort  effort
	work    int64 // effort for all bodies so far
	mutable int   // mutable globals, the safepoint counter included
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
			b := body{start: r.pos, end: r.pos + int(size), edits: len(m.edits)}
			r.err = d.readBody(&b, m.importFuncs+i)
			b.editsEnd = len(m.edits)
			m.bodies = append(m.bodies, b)
			r.pos = b.end
		}
		if r.err != nil {
			r.err.Function = m.importFuncs + i
			return
		}
	}
}

// readBody decodes one body. It checks what the compiler's type check could
// not: that no index is beyond its index space, which the rewriting extends;
// and that both read the same instructions, so that insertions cannot end up
// inside of one.
func (d *decoder) readBody(f *body, index int) *FormatError {
	b := d.wasm[:f.end]
	fault := func(at int, format string, args ...any) *FormatError {
		return &FormatError{Function: index, Offset: int64(at), Cause: fmt.Sprintf(format, args...)}
	}
	i, err := d.readLocals(f, index)
	if err != nil {
		return err
	}
	f.code = i

	var (
		cost     int    // instructions so far; see safepoint.go
		calls    int    // so far
		straight = true // whether all instructions so far are run by every call
		lead     = -1   // the first loop, when it is reached straight from the entry
		next     int
	)
	entry := d.edit(edit{at: uint32(i), kind: editCharge})
	d.frames = append(d.frames[:0], frame{op: opBlock, arity: len(d.types[d.funcs[index]].Results), join: unreachedJoin})
	d.effort.begin(f.locals)

	for i < len(b) {
		at := i
		op := b[i]
		i++
		cost++
		imm := immediates[op]
		code := uint32(op) // behind a prefix, the opcode that follows
		if imm == immPrefix {
			if code, next = u32(b, i); next < 0 {
				return fault(at, "the body ends in the middle of an instruction")
			}
			if op == opPrefixSIMD {
				if code > 0xff {
					d.unsupport("relaxed SIMD instructions")
					i = f.end
					d.frames = d.frames[:0]
					break
				}
				// wazero reads one byte of the opcode and takes the second one of a
				// large opcode, 0x01, for a nop: any longer form of the same number
				// would be instructions to it that were not checked here.
				if next-i > 2 || next-i == 2 && code < 0x80 {
					return fault(at, "an opcode in an overlong form")
				}
				imm = simdImmediates[code]
			} else {
				if name, ok := tableMutators[code]; ok && d.tableMutation == "" {
					d.tableMutation = fmt.Sprintf("%s in function %d at offset %d", name, index, at)
				}
				var bulk bool
				i, bulk, err = d.readMisc(f, at, next, code)
				if err != nil {
					err.Function = index
					return err
				}
				if bulk {
					d.edit(edit{at: uint32(at), kind: editChargeBytes, n: 1})
					f.scratch = true
				}
				continue
			}
			i = next
		}

		switch imm {
		case immNone:
			if op == opReturn || op == opUnreachable {
				straight = false
				d.effort.leave()
			}

		case immControl:
			switch op {
			case opEnd:
				cost--
				top := d.frames[len(d.frames)-1]
				d.frames = d.frames[:len(d.frames)-1]
				d.effort.close(&top)
				if top.op == opLoop {
					d.closeLoop(top.edit, i, cost-top.cost)
				}
				if len(d.frames) == 0 && i != f.end {
					return fault(i, "%d bytes behind the end of the body", f.end-i)
				}
			case opElse:
				cost--
				top := &d.frames[len(d.frames)-1]
				if top.op != opIf {
					return fault(at, "else without if")
				}
				top.op = opElse
				d.effort.orElse(top)
			default:
				var t Signature
				if t, i = d.blockType(b, i); i < 0 {
					return fault(at, "not a type of a block")
				}
				if op != opIf {
					cost-- // blocks cost nothing at run time
				}
				fr := frame{op: op, arity: len(t.Results), added: d.frames[len(d.frames)-1].added, cost: cost}
				switch op {
				case opLoop:
					var blocks int
					fr.edit, blocks = d.openLoop(at, i)
					fr.added += blocks
					fr.arity = len(t.Params)
					if straight {
						lead = fr.edit
					}
					straight = false
				case opIf:
					straight = false
				}
				d.effort.open(&fr)
				d.frames = append(d.frames, fr)
				if len(d.frames) > d.limits.Depth {
					return fault(at, "blocks are nested more than %d deep; the limit keeps compiling short", d.limits.Depth)
				}
			}

		case immLabel:
			if i = d.label(b, i); i < 0 {
				return fault(at, "a branch to a block that is not there")
			}
			straight = false
			if op == opBr {
				d.effort.leave()
			} else {
				d.effort.depth++
			}

		case immTable:
			var n uint32
			if n, i = u32(b, i); i < 0 || int64(n) > int64(len(b)-i) {
				return fault(at, "a br_table that is longer than the body")
			}
			if int64(n) > int64(d.limits.Targets) {
				return fault(at, "a br_table of %d targets, the limit is %d", n, d.limits.Targets)
			}
			for k := uint32(0); k <= n; k++ {
				if i = d.label(b, i); i < 0 {
					return fault(at, "a branch to a block that is not there")
				}
			}
			straight = false
			d.effort.pass(int(n) * costEntry)
			d.effort.leave()

		case immCall:
			var g uint32
			if g, i = u32(b, i); i < 0 || int64(g) >= int64(len(d.funcs)) {
				return fault(at, "a call of a function that is not there")
			}
			straight = false
			calls++
			cost += callCost
			d.effort.pass(d.mutable + d.types[d.funcs[g]].arity())

		case immCallIndirect:
			var t, k uint32
			if t, i = u32(b, i); i < 0 || int64(t) >= int64(len(d.types)) {
				return fault(at, "a call of a type that is not there")
			}
			if k, i = u32(b, i); i < 0 || int64(k) >= int64(len(d.tables)) {
				return fault(at, "a call through a table that is not there")
			}
			straight = false
			calls++
			cost += callCost
			d.effort.pass(d.mutable + d.types[t].arity())

		case immLocal:
			var l uint32
			if l, i = u32(b, i); i < 0 || int64(l) >= int64(f.locals) {
				return fault(at, "a local that is not there")
			}
			if op == opLocalGet {
				d.effort.use(l)
			} else {
				d.effort.set(l)
			}

		case immGlobal:
			var g uint32
			if g, i = u32(b, i); i < 0 || int64(g) >= int64(len(d.globals)) {
				return fault(at, "a global that is not there")
			}

		case immTableIndex:
			var t uint32
			if t, i = u32(b, i); i < 0 || int64(t) >= int64(len(d.tables)) {
				return fault(at, "a table that is not there")
			}
			if op == opTableSet && d.tableMutation == "" {
				d.tableMutation = fmt.Sprintf("table.set in function %d at offset %d", index, at)
			}

		case immMemory, immMemoryLane:
			var align uint32
			if align, i = u32(b, i); i >= 0 {
				_, i = u32(b, i)
			}
			if i < 0 || align >= 32 {
				return fault(at, "an address that is not one of a single 32-bit memory")
			}
			if imm == immMemoryLane {
				i++
			}

		case immZero:
			if i >= len(b) || b[i] != 0 {
				return fault(at, "an instruction for another memory than the first")
			}
			i++

		case immI32:
			if i < len(b) && b[i] < 0x80 {
				i++
			} else if _, i = signed(b, i, 32); i < 0 {
				return fault(at, "not a 32-bit constant")
			}

		case immI64:
			if i < len(b) && b[i] < 0x80 {
				i++
			} else if _, i = signed(b, i, 64); i < 0 {
				return fault(at, "not a 64-bit constant")
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
				return fault(at, "not a type of select that jobs have")
			}
			i += 2

		case immRefType:
			if i >= len(b) || !ValueType(b[i]).isReference() {
				return fault(at, "a reference type that jobs do not have")
			}
			i++

		case immFunction:
			var g uint32
			// The start function becomes an export, and thereby declared.
			if g, i = u32(b, i); i < 0 || int64(g) >= int64(len(d.declared)) || !d.declared[g] {
				return fault(at, "a reference to a function that is not declared")
			}

		case immUnsupported:
			d.unsupport(feature(op))
			i = f.end
			d.frames = d.frames[:0]

		default:
			return fault(at, "there is no instruction %#x%s", op, behind(imm, op, code))
		}
	}
	if i > f.end || len(d.frames) > 0 {
		return fault(f.end, "the body ends in the middle of an instruction or a block")
	}
	d.placeEntry(entry, lead, cost, calls)
	if d.work += d.effort.total(); d.work > d.limits.Work {
		return &FormatError{Function: index, Offset: -1, Cause: "the module would take too long to compile: " +
			"it has deeply nested loops, or long chains of blocks, with many locals; split such functions"}
	}
	return nil
}

// behind shows the second part of a prefixed opcode.
func behind(imm immediate, op byte, code uint32) string {
	if imm == immInvalid && op == opPrefixSIMD {
		return fmt.Sprintf(" %#x", code)
	}
	return ""
}

func (d *decoder) readLocals(f *body, index int) (int, *FormatError) {
	r := reader{wasm: d.wasm, pos: f.start, end: f.end}
	locals := int64(len(d.types[d.funcs[index]].Params))
	for n := r.count("declarations of locals", d.limits.Locals); n > 0 && r.err == nil; n-- {
		at := r.pos
		locals += int64(r.u32("the number of locals"))
		readValueType(&r)
		if locals > int64(d.limits.Locals) {
			r.fail(at, "more than %d locals; the limit keeps compiling short", d.limits.Locals)
		}
	}
	f.locals = int(locals)
	return r.pos, r.err
}

// blockType reads the type of a block and returns what follows, or -1.
func (d *decoder) blockType(b []byte, i int) (t Signature, next int) {
	if i < len(b) && b[i] == emptyBlock {
		return Signature{}, i + 1
	}
	if i < len(b) && ValueType(b[i]).valid() {
		return Signature{Results: oneValue}, i + 1
	}
	n, next := signed(b, i, 33)
	if next < 0 || n < 0 || n >= int64(len(d.types)) {
		return Signature{}, -1
	}
	return d.types[n], next
}

// oneValue stands for a single result of any type where only the number of
// results matters.
var oneValue = []ValueType{I32}

// label reads the label of a branch and returns what follows, or -1. A branch
// that leaves a loop also leaves the blocks that are added around it.
func (d *decoder) label(b []byte, i int) int {
	l, next := u32(b, i)
	if next < 0 || int64(l) >= int64(len(d.frames)) {
		return -1
	}
	top := len(d.frames) - 1
	target := &d.frames[top-int(l)]
	d.effort.branch(target)
	d.effort.pass(target.arity)
	if left := d.frames[top].added - target.added; left > 0 {
		d.edit(edit{at: uint32(i), kind: editLabel, n: l + uint32(left)})
	}
	return next
}

// readMisc reads the immediates, at i, of the instruction behind prefix 0xfc,
// and says whether it is one that works on many bytes of memory.
func (d *decoder) readMisc(f *body, at, i int, code uint32) (next int, bulk bool, err *FormatError) {
	r := reader{wasm: d.wasm, pos: i, end: f.end}
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
