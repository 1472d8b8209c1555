package module

// Safepoints. The counter is charged where execution cannot go on for ever
// without passing, and with enough that the time between two calls of the host
// is bounded whatever the module looks like:
//
//   - At every loop head, with the instructions of the loop's body.
//   - At every function entry, with the instructions of the body. A leaf (no
//     calls, at most callCost instructions) needs none: an execution that never
//     ends must go through a loop head or through a recursion, and every
//     function of a recursion contains a call. What a leaf costs is charged by
//     its callers, where each call counts as callCost instructions more.
//   - At bulk memory instructions, with the number of bytes; see bulk.go.
//
// A round is 512 instructions or 64 bytes, and what is charged is at least one. So with an Interval of 65,536 the host is called after at most 33
// million instructions or 4 MiB, and loops of a dozen instructions call it every
// 0.1 ms.
//
// What a safepoint costs is above all what the possible call does to registers:
// the compiler keeps a value that is live across a call in memory and reads it
// from there at each use, even when the call is not taken. So the call must not
// be inside of the loop. It stands outside, and the loop is entered anew after
// it:
//
//	block                     ;; added
//	  loop                    ;; added
//	    block                 ;; added
//	      loop                ;; the original; all branches to it lead here
//	        counter -= rounds
//	        if counter <= 0 { br to the end of the inner block }
//	        ...
//	      end
//	      br to the end of the outer block, with the results
//	    end
//	    counter = interval + rounds
//	    yield()
//	    br to the added loop
//	  end
//	end
//
// So what changes in the loop has one name outside, which is in memory, and
// another one inside, which is in a register. Measured with a call at the loop
// head instead, and with this: a multiplication of matrices in C +61% and 0%,
// the tightest possible loop +46% and +35%, a word count in Go +22% and +12%.
// Counting the iterations of tight loops in a local gains nothing on top.
//
// Loops with parameters, which compilers hardly emit, keep the call at the head:
// the added blocks would need function types that the module lacks.
//
// A loop that every call reaches directly from the entry (all functions of Go
// begin so) also does the work of the entry's safepoint.

const (
	// callCost is what a call is charged with, in instructions, and the largest
	// cost of a function that has no safepoint at its entry.
	callCost = 32
	// roundShift makes rounds of instructions.
	roundShift = 9
	// loopBlocks is the number of blocks that are added around a loop.
	loopBlocks = 3
	// maxInterval keeps the counter far from where it would wrap around: a charge
	// is at most 1<<26.
	maxInterval = 1 << 24
)

// edit is a change of the code. Edits are recorded while a body is decoded, in
// ascending order.
type edit struct {
	at   uint32 // in the file: the change is in front of this byte
	n    uint32 // see the kinds
	kind editKind
}

type editKind uint8

const (
	// editCharge charges n rounds. 0 means that the safepoint is not needed after
	// all.
	editCharge editKind = iota
	// editLoop wraps the loop that begins here, and charges n rounds at its head.
	editLoop
	// editEnd ends the blocks around a loop, whose editLoop has the index n.
	editEnd
	// editLabel changes the label here to n.
	editLabel
	// editCall calls the helper n: instead of the instruction here, or in front of
	// it if the helper is helpCharge.
	editCall
)

// edit records an edit and returns its index.
func (d *decoder) edit(e edit) int {
	d.edits = append(d.edits, e)
	return len(d.edits) - 1
}

// rounds is what a number of instructions is charged with.
func rounds(cost int) uint32 { return 1 + uint32(cost)>>roundShift }

// openLoop records the safepoint of a loop whose instruction is wasm[at:next],
// and says how many blocks are added around it.
func (d *decoder) openLoop(at, next int) (index, blocks int) {
	if hasNoParams(d.wasm[at:next]) {
		return d.edit(edit{at: uint32(at), kind: editLoop}), loopBlocks
	}
	return d.edit(edit{at: uint32(next), kind: editCharge}), 0
}

// hasNoParams says whether the type of a block is one without parameters. It
// may be wrong about types that are given by their index.
func hasNoParams(instruction []byte) bool {
	t := instruction[1]
	return len(instruction) == 2 && (t == emptyBlock || ValueType(t).valid())
}

// closeLoop completes the safepoint of a loop, whose body, of the given cost,
// ends in front of next.
func (d *decoder) closeLoop(index, next, cost int) {
	loop := &d.edits[index]
	loop.n = rounds(cost)
	if loop.kind == editLoop {
		d.edit(edit{at: uint32(next), kind: editEnd, n: uint32(index)})
	}
}

// placeEntry decides about the safepoint at the entry when the whole body has
// been seen.
func (d *decoder) placeEntry(entry int) {
	if d.calls == 0 && d.cost <= callCost {
		return
	}
	n := rounds(d.cost)
	if d.lead >= 0 && n <= d.edits[d.lead].n+1 {
		d.edits[d.lead].n = n
		return
	}
	d.edits[entry].n = n
}
