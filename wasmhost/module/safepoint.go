package module

// Safepoints. The counter is charged where execution cannot go on for ever
// without passing, and enough that the time between two calls of the host is
// bounded whatever the module looks like:
//
//   - At every loop head, with the instructions of the loop's body.
//   - At every function entry, with the instructions of the body. A leaf (no
//     calls, at most callCost instructions) needs none: an execution that never
//     ends must go through a loop head or through a recursion, and every
//     function of a recursion contains a call. What a leaf costs is charged by
//     its callers, where each call counts as callCost instructions more.
//   - At bulk memory instructions, with the number of bytes.
//
// A round is 512 instructions or 64 bytes, and whatever is charged is at least
// one. So with an Interval of 65,536 the host is called after at most 33
// million instructions, loops of a dozen instructions call it every 0.1 ms,
// and what remains uninterrupted is one bulk instruction, at the speed at which
// the machine copies memory.
//
// A loop that every call reaches directly from the entry (all functions of Go
// begin so) also does the work of the entry's safepoint.

const (
	// callCost is what a call is charged with, in instructions, and the largest
	// cost of a function that has no safepoint at its entry.
	callCost = 32
	// roundShift makes rounds of instructions.
	roundShift = 9
	// bulkShift makes rounds of bytes.
	bulkShift = 6
	// maxInterval keeps the counter far from where it would wrap around.
	maxInterval = 1 << 24
)

// point is a place where the counter is charged.
type point struct {
	at     uint32 // in the file: the code is inserted before this byte
	weight uint32 // rounds; 0 means that the point is not needed after all
	bulk   bool   // charge the operand on top of the stack, a number of bytes, as well
}

// weight is the number of rounds that cost instructions are charged with.
func weight(cost int) uint32 { return 1 + uint32(cost)>>roundShift }

// placeEntry decides about the point at the entry, when the whole body, of the
// given cost, has been seen. lead is the loop that every call reaches, or -1.
func (d *decoder) placeEntry(f *body, entry, lead, cost, calls int) {
	if calls == 0 && cost <= callCost {
		return
	}
	w := weight(cost)
	if lead >= 0 && w <= d.points[lead].weight+1 {
		d.points[lead].weight = w
		return
	}
	d.points[entry].weight = w
}
