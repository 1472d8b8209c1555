package module

// Bulk memory instructions. One memory.fill can clear 4 GiB, during which the
// module cannot be stopped and the host's garbage collector, which waits for all
// threads, holds up the whole process: 0.3 s for 512 MiB and a second or more
// for 4 GiB were measured, most of it page faults. So a memory.fill or a
// memory.copy becomes a call of a function, added behind all others, that works in
// pieces with a charge for each. It traps where the instruction would, before it
// has written anything, and copies what overlaps in the direction that is right
// for it.
//
// A constant and small number of bytes, as compilers emit for assignments of
// structs, stays as it is and costs as much as a call. A memory.init stays in one
// piece, too: what it copies is in the file, whose size is limited; it is charged
// in front.

const (
	// bulkPiece is the size of a piece in bytes: with the usual interval the
	// host is called after each. The page faults of one take some milliseconds.
	bulkPiece = 1 << 22
	// bulkShift makes rounds of bytes.
	bulkShift = 6
	// smallBulk is the largest number of bytes that is not worth a call.
	smallBulk = 256
)

// helper is a function that the rewriting adds.
type helper int

const (
	helpFill   helper = iota // instead of memory.fill
	helpCopy                 // instead of memory.copy
	helpCharge               // in front of memory.init: charges for the bytes on top of the stack
	helpYield                // the yield function, for modules that import none
	helpers
)

var helperTypes = [helpers]Signature{
	helpFill:   {Params: []ValueType{I32, I32, I32}},
	helpCopy:   {Params: []ValueType{I32, I32, I32}},
	helpCharge: {Params: []ValueType{I32}, Results: []ValueType{I32}},
}

// bulk decides what becomes of the bulk memory instruction wasm[at:next].
// constant is the number of bytes if the instruction before says it, or -1.
func (d *decoder) bulk(at, next int, code uint32, constant int64) {
	d.cost += callCost
	if constant >= 0 && constant <= smallBulk {
		return
	}
	h := helpCharge
	switch code {
	case miscMemoryFill:
		h = helpFill
	case miscMemoryCopy:
		h = helpCopy
	}
	d.needs[h] = true
	d.edit(edit{at: uint32(at), kind: editCall, n: uint32(h)})
	d.effort.add(costEdit)
	d.effort.pass(d.mutable + helperTypes[h].arity())
}

// addHelpers gives indices to the functions that are to be added, and types to
// them.
func (w *rewriter) addHelpers() {
	for h := range helpers {
		if !w.needs[h] {
			continue
		}
		w.helperIndex[h] = uint32(len(w.funcs) + len(w.added))
		w.added = append(w.added, h)
		w.addedTypes = append(w.addedTypes, w.typeIndex(helperTypes[h]))
	}
}

// typeIndex finds a type, or adds it behind all others.
func (w *rewriter) typeIndex(s Signature) uint32 {
	for i, t := range w.types {
		if t.Equal(s) {
			return uint32(i)
		}
	}
	w.newTypes++
	w.types = append(w.types, s)
	return uint32(len(w.types) - 1)
}

// endOfBulk is where the memory.fill or memory.copy at at ends.
func (w *rewriter) endOfBulk(at int, h helper) int {
	_, next := u32(w.wasm, at+1)
	if h == helpCopy {
		next++ // it names two memories
	}
	return next + 1
}

// helperBody is the body of an added function, without its length.
func (w *rewriter) helperBody(h helper) []byte {
	const d, v, s, n = 0, 1, 1, 2 // parameters: destination, value or source, number
	c := code{b: []byte{0}}       // no locals
	beyond := func(local uint32) {
		c.get(local).op(opI64ExtendI32U).get(n).op(opI64ExtendI32U, opI64Add)
		c.op(opMemorySize, 0, opI64ExtendI32U, opI64Const, 16, opI64Shl, opI64GtU)
	}
	move := func(local uint32, op byte) { c.get(local).i32(bulkPiece).op(op, opLocalSet).u32(local) }
	fill := func() { c.op(opPrefixMisc, miscMemoryFill, 0) }
	copy := func() { c.op(opPrefixMisc, miscMemoryCopy, 0, 0) }

	switch h {
	case helpYield:

	case helpCharge:
		w.chargeBytes(&c, 0)
		c.get(0)

	case helpFill, helpCopy:
		// The last piece is done by the original instruction; so is everything when
		// it is small, or would trap.
		c.op(opBlock, emptyBlock)
		c.get(n).i32(bulkPiece).op(opI32LeU, opBrIf, 0)
		beyond(d)
		c.op(opBrIf, 0)
		if h == helpCopy {
			beyond(s)
			c.op(opBrIf, 0)
		}
		c.op(opLoop, emptyBlock)
		c.b = append(w.appendCharge(c.b, bulkPiece>>bulkShift), opIf, emptyBlock)
		c.b = append(w.appendYield(c.b, 0), opEnd)
		if h == helpFill {
			c.get(d).get(v).i32(bulkPiece)
			fill()
			move(d, opI32Add)
			move(n, opI32Sub)
		} else {
			c.get(d).get(s).op(opI32LeU, opIf, emptyBlock)
			c.get(d).get(s).i32(bulkPiece)
			copy()
			move(d, opI32Add)
			move(s, opI32Add)
			move(n, opI32Sub)
			c.op(opElse) // from the end
			move(n, opI32Sub)
			c.get(d).get(n).op(opI32Add).get(s).get(n).op(opI32Add).i32(bulkPiece)
			copy()
			c.op(opEnd)
		}
		c.get(n).i32(bulkPiece).op(opI32GtU, opBrIf, 0, opEnd, opEnd)
		w.chargeBytes(&c, n)
		c.get(d).get(v).get(n)
		if h == helpFill {
			fill()
		} else {
			copy()
		}
	}
	return append(c.b, opEnd)
}

// chargeBytes charges for the number of bytes in a local.
func (w *rewriter) chargeBytes(c *code, local uint32) {
	c.op(opGlobalGet).u32(w.counter).get(local).i32(bulkShift).op(opI32ShrU)
	c.b = append(append(c.b, w.settle...), opIf, emptyBlock)
	c.b = append(w.appendYield(c.b, 0), opEnd)
}

// code is code that is being written.
type code struct{ b []byte }

func (c *code) op(b ...byte) *code     { c.b = append(c.b, b...); return c }
func (c *code) u32(v uint32) *code     { c.b = appendU32(c.b, v); return c }
func (c *code) get(local uint32) *code { return c.op(opLocalGet).u32(local) }
func (c *code) i32(constant int32) *code {
	c.b = appendI32(append(c.b, opI32Const), constant)
	return c
}
