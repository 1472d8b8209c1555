package module

// Direct branches. A function of the Go compiler is a loop that begins with a
// dispatch, because a goroutine may have to go on in the middle of it:
//
//	loop
//	  block block ... block
//	    local.get $pc
//	    br_table ...
//	  end
//	  ...                        ;; the code of value 0
//	  end
//	  ...                        ;; the code of value 1, and so on
//
// It goes from one basic block to another, wherever that is, by setting $pc and
// branching to the loop. Where the other is further on, the branch can as well
// leave the block that ends in front of it:
//
//	i32.const 7                     i32.const 7
//	local.set $pc                   local.set $pc
//	br to the loop                  br to the block of value 7
//
// That saves the safepoint and the jump over the table. Above all, it saves
// what the loop's head does with all variables that are alive somewhere in the
// function: there, the compiler keeps them in memory. Branches backwards stay, and
// so a safepoint is still passed before any instruction is run again.

// dispatch is the one that the decoder is in, or in whose head it is. Of nested
// ones it is the outer.
type dispatch struct {
	loop int // index of the loop's frame, or noLoop
	head int // where the blocks at the loop's head end
	read int // behind the local.get there

	known   bool // the table has been read:
	local   uint32
	targets []int // by value, the last one for all others: index of a frame
	open    int   // the innermost of the loop's blocks that is still open

	// A branch at from finds value in the local.
	from  int
	value uint32
}

const noLoop = -1

// enter notes a loop or block that begins at at and whose body begins at body;
// its frame will have the given index.
func (p *dispatch) enter(f *frame, at, body, index int) {
	switch {
	case f.op == opLoop && p.loop == noLoop && f.arity == 0:
		*p = dispatch{loop: index, head: body, targets: p.targets[:0]}
	case f.op == opBlock && at == p.head && f.arity == 0:
		p.head = body
	}
}

// leave notes that the frame with the given index is closed.
func (p *dispatch) leave(index int) {
	p.open = min(p.open, index-1)
	if index == p.loop {
		p.loop = noLoop
	}
}

// get notes that a local is read between at and end.
func (p *dispatch) get(local uint32, at, end int) {
	if at == p.head && p.loop != noLoop {
		p.local, p.read = local, end
	}
}

// table notes the table at at, whose n+1 labels, at i, have been checked. top is
// the index of the innermost frame.
func (p *dispatch) table(b []byte, at, i int, n uint32, top int) {
	if at != p.read || p.loop == noLoop || p.known {
		return
	}
	p.known, p.open = true, top
	for range int(n) + 1 {
		var l uint32
		l, i = u32(b, i)
		p.targets = append(p.targets, top-int(l))
	}
}

// set notes that a local is given a value, and that end is behind.
func (p *dispatch) set(local, value uint32, end int) {
	if p.known && local == p.local {
		p.from, p.value = end, value
	}
}

// target is the index of the frame to which the branch at at, to the frame with
// index to, might as well go.
func (p *dispatch) target(at, to int) int {
	if !p.known || at != p.from || to != p.loop {
		return to
	}
	if t := p.targets[min(p.value, uint32(len(p.targets)-1))]; p.loop < t && t <= p.open {
		return t
	}
	return to
}
