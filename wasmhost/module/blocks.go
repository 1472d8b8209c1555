package module

// frame is a block that is open.
type frame struct {
	op    byte
	arity int // values that a branch to the block passes
	added int // blocks that the rewriting adds around this one and those outside
	edit  int // of a loop, index in parsed.edits
	cost  int // of the body where the block begins

	// For effort: the dominator depth of the first of the branches to the block's
	// end, that of the block's beginning, whether that cannot be reached, and the
	// number of branches.
	join, depth int
	dead        bool
	edges       int
}

// control decodes block, loop, if, else and end; i is behind the opcode.
func (d *decoder) control(b []byte, i int) (int, *FormatError) {
	at := i - 1
	top := &d.frames[len(d.frames)-1]
	switch op := b[at]; op {
	case opEnd:
		d.cost--
		d.frames = d.frames[:len(d.frames)-1]
		d.dispatch.leave(len(d.frames))
		d.effort.close(top)
		if top.op == opLoop {
			d.closeLoop(top.edit, i, d.cost-top.cost)
		}
		if len(d.frames) == 0 && i != d.end {
			return i, d.fault(i, "%d bytes behind the end of the body", d.end-i)
		}
		return i, nil

	case opElse:
		d.cost--
		if top.op != opIf {
			return i, d.fault(at, "else without if")
		}
		top.op = opElse
		d.effort.orElse(top)
		return i, nil

	default:
		t, next := d.blockType(b, i)
		if next < 0 {
			return i, d.fault(at, "not a type of a block")
		}
		if len(d.frames) >= d.limits.Depth {
			return i, d.fault(at, "blocks are nested more than %d deep; the limit keeps compiling short", d.limits.Depth)
		}
		if op != opIf {
			d.cost-- // blocks cost nothing at run time
		}
		f := frame{op: op, arity: len(t.Results), added: top.added, cost: d.cost}
		if op == opLoop {
			var blocks int
			f.edit, blocks = d.openLoop(at, next)
			f.added += blocks
			f.arity = len(t.Params)
			if d.straight {
				d.lead = f.edit
			}
		}
		if op != opBlock {
			d.straight = false
		}
		d.effort.open(&f)
		d.dispatch.enter(&f, at, next, len(d.frames))
		d.frames = append(d.frames, f)
		return next, nil
	}
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
	to := d.dispatch.target(i-1, top-int(l))
	target := &d.frames[to]
	d.effort.branch(target)
	d.effort.pass(target.arity)
	if n := uint32(top - to + d.frames[top].added - target.added); n != l {
		d.edit(edit{at: uint32(i), kind: editLabel, n: n})
		d.effort.add(costEdit)
	}
	return next
}
