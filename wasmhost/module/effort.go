package module

import "math"

// effort estimates how long a compiler works on a function, in units of about
// 100 ns. The time for ordinary code is proportional to its length and needs no
// guard. This is about what is not: with wazero's compiler, a module of 3 KB
// can take seconds and one of 100 KB can take hours. The causes, found by
// profiling such modules:
//
//   - Every local that is live across a join of control flow is one value more
//     for the join to merge, and the compiler compares all of a join's values
//     with each other. Loops are worse: they begin with all locals that are in
//     use and drop in rounds what needs no merging.
//   - For each branch, it walks up the tree of dominators, which is as deep as the
//     longest chain of blocks, and along all other branches to the same block.
//   - After each call it reloads each mutable global.
//   - Each local, each value that a call or a branch passes, and each entry of a
//     br_table is something to keep: a few bytes of code can pass hundreds of
//     values or declare thousands of locals.
//
// Functions of real compilers are far below: their big functions are flat.
type effort struct {
	values int64 // locals, values passed, globals reloaded and br_table entries
	walk   int64 // steps up the tree of dominators
	edges  int64 // steps along branches to the same block

	depth int   // of the current block in the tree of dominators, at most
	dead  bool  // whether the current code cannot be reached
	loops int32 // open loops

	// For the locals: when each was last touched, as the number of the last join
	// before, valid for the function of the same epoch.
	touched []touch
	epoch   int32
	joins   []join
}

type touch struct{ epoch, join int32 }

// join is a place where control flow comes together.
type join struct {
	begin, end int32 // how many locals' ranges begin and end here
	cost       int32 // of a pair of values, in sixteenths
}

// Weights of the estimate, fitted to measurements of the compiler.
const (
	costValue     = 1  // a local declared, a value passed, a global reloaded
	costEntry     = 10 // an entry of a br_table
	costEdit      = 4  // a change of the code, which takes memory here
	costTypeValue = 8  // a parameter or result of a type, for which there is code to enter functions
	perCost       = 16 // the following in sixteenths
	costJoinPair  = 1  // a pair of values that a join merges
	costLoopPair  = 5  // a pair of values that a loop merges, times its nesting
	mostNesting   = 8  // from which on nesting makes no difference
	costWalk      = 2  // a step up the tree of dominators
	edgesPerCost  = 6  // steps along branches to the same block
	loopDepth     = 3  // by which a loop, as it is rewritten, makes that tree deeper
	loopEdges     = 6  // branches of a loop as it is rewritten
	unreachedJoin = math.MaxInt
)

// begin starts a function.
func (e *effort) begin(locals int) {
	*e = effort{values: int64(locals) * costValue, touched: e.touched, epoch: e.epoch + 1, joins: append(e.joins[:0], join{})}
	if n := locals - len(e.touched); n > 0 {
		e.touched = append(e.touched, make([]touch, n)...)
	}
}

// use notes that a local is read: every join since it was last touched has to
// merge it.
func (e *effort) use(local uint32) {
	now := int32(len(e.joins) - 1)
	if now == 0 {
		return
	}
	t := &e.touched[local]
	since := int32(0)
	if t.epoch == e.epoch {
		since = t.join
	}
	if since < now {
		e.joins[since+1].begin++
		e.joins[now].end++
	}
	*t = touch{epoch: e.epoch, join: now}
}

// set notes that a local is overwritten.
func (e *effort) set(local uint32) {
	if now := int32(len(e.joins) - 1); now > 0 {
		e.touched[local] = touch{epoch: e.epoch, join: now}
	}
}

// add notes effort that comes even where the code cannot be reached.
func (e *effort) add(n int) { e.values += int64(n) }

// pass notes that n values are passed, or globals reloaded.
func (e *effort) pass(n int) {
	if !e.dead {
		e.values += int64(n) * costValue
	}
}

// open notes that a block, a loop or the first arm of an if begins.
func (e *effort) open(f *frame) {
	f.join = unreachedJoin
	switch f.op {
	case opLoop:
		e.loops++
		e.joins = append(e.joins, join{cost: costLoopPair * min(e.loops, mostNesting)})
		e.walk += int64(e.depth) * loopEdges
		e.depth += loopDepth
	case opIf:
		e.branch(f)
		e.depth++
	}
	f.depth = e.depth
	f.dead = e.dead
}

// orElse notes that the second arm of an if begins.
func (e *effort) orElse(f *frame) {
	e.branch(f)
	e.depth, e.dead = f.depth, f.dead
}

// branch notes a branch to the end of a block, or to the head of a loop.
func (e *effort) branch(to *frame) {
	if e.dead {
		return
	}
	e.walk += int64(e.depth)
	e.edges += int64(to.edges)
	to.edges++
	if to.op != opLoop {
		to.join = min(to.join, e.depth)
	}
}

// leave notes that what follows is not reached from here.
func (e *effort) leave() { e.dead = true }

// close notes that a block, a loop or an if ends.
func (e *effort) close(f *frame) {
	if f.op == opLoop {
		e.loops--
		e.depth++
		return
	}
	e.branch(f)
	if f.join == unreachedJoin {
		return
	}
	e.depth, e.dead = f.join+1, false
	e.joins = append(e.joins, join{cost: costJoinPair})
}

// total is the estimate for the function.
func (e *effort) total() int64 {
	total := e.values + (e.walk*costWalk+e.edges/edgesPerCost)/perCost
	live := int64(0)
	for _, j := range e.joins {
		live += int64(j.begin)
		total += live * live * int64(j.cost) / perCost
		live -= int64(j.end)
	}
	return total
}
