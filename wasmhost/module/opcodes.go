package module

// Instructions that the package treats by name.
const (
	opUnreachable   = 0x00
	opBlock         = 0x02
	opLoop          = 0x03
	opIf            = 0x04
	opElse          = 0x05
	opEnd           = 0x0b
	opBr            = 0x0c
	opBrIf          = 0x0d
	opBrTable       = 0x0e
	opReturn        = 0x0f
	opCall          = 0x10
	opCallIndirect  = 0x11
	opLocalGet      = 0x20
	opLocalSet      = 0x21
	opLocalTee      = 0x22
	opGlobalGet     = 0x23
	opGlobalSet     = 0x24
	opTableGet      = 0x25
	opTableSet      = 0x26
	opMemorySize    = 0x3f
	opI32Const      = 0x41
	opI64Const      = 0x42
	opF32Const      = 0x43
	opF64Const      = 0x44
	opI32Eqz        = 0x45
	opI32GtU        = 0x4b
	opI32LeS        = 0x4c
	opI32LeU        = 0x4d
	opI64GtU        = 0x56
	opI32Add        = 0x6a
	opI32Sub        = 0x6b
	opI32ShrU       = 0x76
	opI64Add        = 0x7c
	opI64Shl        = 0x86
	opI64ExtendI32U = 0xad
	opRefNull       = 0xd0
	opRefFunc       = 0xd2
	opPrefixMisc    = 0xfc
	opPrefixSIMD    = 0xfd
	opPrefixAtomic  = 0xfe

	emptyBlock = 0x40 // the type of a block without parameters and results

	miscMemoryInit = 0x08
	miscDataDrop   = 0x09
	miscMemoryCopy = 0x0a
	miscMemoryFill = 0x0b
	miscTableInit  = 0x0c
	miscElemDrop   = 0x0d
	miscTableCopy  = 0x0e
	miscTableGrow  = 0x0f
	miscTableSize  = 0x10
	miscTableFill  = 0x11

	simdConst   = 0x0c
	simdShuffle = 0x0d
)

// immediate says what follows an opcode.
type immediate byte

const (
	immInvalid immediate = iota
	immNone
	immDone    // has been read
	immControl // block, loop, if, else, end: see decoder.control
	immLabel
	immTable // br_table
	immCall
	immCallIndirect
	immLocal
	immGlobal
	immTableIndex
	immMemory // alignment and offset
	immZero   // the index of the only memory
	immI32
	immI64
	immF32
	immF64
	immTypes // typed select
	immRefType
	immFunction
	immPrefix
	immLane
	immMemoryLane
	immV128
	immUnsupported
)

// immediates is by opcode.
var immediates = func() (t [256]immediate) {
	fill(&t, immNone, 0x00, 0x01, 0x0f, 0x0f, 0x1a, 0x1b, 0x45, 0xc4, 0xd1, 0xd1)
	fill(&t, immControl, opBlock, opElse, opEnd, opEnd)
	fill(&t, immLabel, opBr, opBrIf)
	fill(&t, immTable, opBrTable, opBrTable)
	fill(&t, immCall, opCall, opCall)
	fill(&t, immCallIndirect, opCallIndirect, opCallIndirect)
	fill(&t, immTypes, 0x1c, 0x1c)
	fill(&t, immLocal, opLocalGet, opLocalTee)
	fill(&t, immGlobal, opGlobalGet, opGlobalSet)
	fill(&t, immTableIndex, opTableGet, opTableSet)
	fill(&t, immMemory, 0x28, 0x3e)
	fill(&t, immZero, 0x3f, 0x40)
	fill(&t, immI32, opI32Const, opI32Const)
	fill(&t, immI64, opI64Const, opI64Const)
	fill(&t, immF32, opF32Const, opF32Const)
	fill(&t, immF64, opF64Const, opF64Const)
	fill(&t, immRefType, opRefNull, opRefNull)
	fill(&t, immFunction, opRefFunc, opRefFunc)
	fill(&t, immPrefix, opPrefixMisc, opPrefixSIMD)
	// Exceptions, tail calls, typed references, garbage collection, threads.
	fill(&t, immUnsupported, 0x06, 0x0a, 0x12, 0x15, 0x18, 0x19, 0x1f, 0x1f, 0xd3, 0xd6, 0xfb, 0xfb, 0xfe, 0xfe)
	return t
}()

// simdImmediates is by the opcode behind the prefix.
var simdImmediates = func() (t [256]immediate) {
	fill(&t, immNone, 0x0e, 0x14, 0x23, 0x53, 0x5e, 0xff)
	fill(&t, immMemory, 0x00, 0x0b, 0x5c, 0x5d)
	fill(&t, immV128, simdConst, simdShuffle)
	fill(&t, immLane, 0x15, 0x22)
	fill(&t, immMemoryLane, 0x54, 0x5b)
	for _, hole := range []byte{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb,
		0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee} {
		t[hole] = immInvalid
	}
	return t
}()

// fill sets ranges, given as pairs of first and last.
func fill(t *[256]immediate, to immediate, ranges ...int) {
	for i := 0; i < len(ranges); i += 2 {
		for op := ranges[i]; op <= ranges[i+1]; op++ {
			t[op] = to
		}
	}
}

// feature names what an opcode of the class immUnsupported belongs to.
func feature(op byte) string {
	switch {
	case op == opPrefixAtomic:
		return "threads (atomic instructions)"
	case op == 0xfb:
		return "garbage-collected types"
	case op == 0x12 || op == 0x13:
		return "tail calls"
	case op == 0x14 || op == 0x15 || op >= 0xd3:
		return "typed function references"
	}
	return "exceptions"
}

// tableMutators are the names of the instructions behind prefix 0xfc that
// change a table or an element segment.
var tableMutators = map[uint32]string{
	miscTableInit: "table.init",
	miscElemDrop:  "elem.drop",
	miscTableCopy: "table.copy",
	miscTableGrow: "table.grow",
	miscTableFill: "table.fill",
}
