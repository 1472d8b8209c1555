package module

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"
)

// TestRandomModules runs random programs as they are and rewritten, and
// compares results, traps, memory and globals.
func TestRandomModules(t *testing.T) {
	t.Parallel()
	h := newHost(t, wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(64))
	interpreter := newHost(t, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(64))
	yields, ends := 0, map[string]int{}
	h.onYield = func() { yields++ }
	rapid.Check(t, func(t *rapid.T) {
		wasm := newGenerator(t).module()
		o := jobOptions()
		o.Exports = nil
		o.Interval = int32(rapid.IntRange(1, 8).Draw(t, "interval"))
		p, err := Prepare(wasm, o)
		if err != nil {
			t.Fatalf("%v\n%x", err, wasm)
		}
		argument := rapid.Uint32().Draw(t, "argument")
		want := runRandom(t, h, wasm, argument)
		for _, h := range []*host{h, interpreter} {
			if diff := cmp.Diff(want, runRandom(t, h, p.Code, argument)); diff != "" {
				t.Fatalf("the rewritten module differs (- original):\n%s\n%x", diff, wasm)
			}
		}
		ends[want[0]]++
	})
	// The test is worth something only if programs do run.
	if yields < 200 || ends["ok"] < 30 || len(ends) < 2 {
		t.Errorf("%d safepoints, ends: %v", yields, ends)
	}
}

// runRandom says how a module's run ends, what it returns, and the state that
// it leaves.
func runRandom(t *rapid.T, h *host, code []byte, argument uint32) []string {
	ctx := context.Background()
	m, err := h.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatalf("%v\n%x", err, code)
	}
	defer m.Close(ctx)
	results, err := m.ExportedFunction("run").Call(ctx, uint64(argument))
	end := "ok"
	if err != nil {
		end = cause(err)
	}
	state := []string{end, fmt.Sprintf("%x", results)}
	for i := 0; ; i++ {
		g := m.ExportedGlobal(fmt.Sprintf("g%d", i))
		if g == nil {
			break
		}
		state = append(state, fmt.Sprintf("g%d = %x", i, g.Get()))
	}
	pages, _ := m.Memory().Read(0, m.Memory().Size())
	state = append(state, fmt.Sprintf("%d pages", len(pages)>>16))
	for i := 0; i < len(pages); i += 64 {
		if line := pages[i : i+64]; !bytes.Equal(line, make([]byte, 64)) {
			state = append(state, fmt.Sprintf("%x: %x", i, line))
		}
	}
	return state
}

// generator writes random programs that end: loops count down locals that
// nothing else touches, functions call only later ones, and a global bounds the
// number of calls.
type generator struct {
	t      *rapid.T
	p      *blueprint
	b      []byte
	index  uint32      // of the function that is being written
	locals []ValueType // parameters included, without the loop counters
	labels []label     // of the open blocks
	loops  int         // open loops
	budget int         // how much more to write
}

// label is what branches to a block need.
type label struct {
	passes  ValueType // 0 for nothing
	loop    bool
	counter byte // the local that a branch to a loop must count down
}

const (
	randomFuncs = 6
	maxLoops    = 3
	fuelGlobal  = 3

	opDrop     = 0x1a
	opSelect   = 0x1b
	opI32Load  = 0x28
	opI32Store = 0x36
	opI32Eq    = 0x46
	opI32LtS   = 0x48
	opI32GtS   = 0x4a
	opI32And   = 0x71
)

// randomTypes are of functions, and the second one is also of loops.
var randomTypes = []Signature{
	{},
	{Params: []ValueType{I32}, Results: []ValueType{I32}},
	{Params: []ValueType{I32, I64}, Results: []ValueType{I64}},
}

func newGenerator(t *rapid.T) *generator { return &generator{t: t} }

func (g *generator) pick(n int) int { return rapid.IntRange(0, n-1).Draw(g.t, "") }

func (g *generator) emit(b ...byte) { g.b = append(g.b, b...) }

func (g *generator) emitIndex(op byte, i uint32) { g.b = appendU32(append(g.b, op), i) }

func (g *generator) module() []byte {
	g.p = &blueprint{
		types:   randomTypes,
		imports: []ImportInfo{{Import: Import{"quern", "yield"}, Kind: KindFunction}},
		memory:  []uint32{1, 4},
		table:   []uint32{randomFuncs - 1, randomFuncs, randomFuncs},
		data:    []string{"some initial bytes"},
		globals: []globalPrint{
			{I32, true, []byte{opI32Const, 1}},
			{I64, true, []byte{opI64Const, 2}},
			{I32, false, []byte{opI32Const, 3}},
			{I32, true, []byte{opI32Const, 50}}, // fuel
		},
		exports: []ExportInfo{{Name: "run", Index: 1}, {Name: "memory", Kind: KindMemory}},
	}
	for i := range g.p.globals {
		g.p.exports = append(g.p.exports, ExportInfo{Name: fmt.Sprintf("g%d", i), Kind: KindGlobal, Index: uint32(i)})
	}
	g.p.funcs = []funcPrint{{typ: 1}}
	for range randomFuncs - 1 {
		g.p.funcs = append(g.p.funcs, funcPrint{typ: uint32(g.pick(len(randomTypes)))})
	}
	for i := range g.p.funcs {
		g.function(uint32(i + 1))
	}
	return g.p.wasm()
}

func (g *generator) function(index uint32) {
	f := &g.p.funcs[index-1]
	t := randomTypes[f.typ]
	own := []ValueType{I32, I64, I32, I64}[:g.pick(5)]
	g.locals = slices.Concat(t.Params, own)
	f.locals = slices.Concat(own, slices.Repeat([]ValueType{I32}, maxLoops))
	g.b, g.index, g.loops, g.budget = nil, index, 0, 60
	result := ValueType(0)
	if len(t.Results) > 0 {
		result = t.Results[0]
	}
	g.labels = []label{{passes: result}}
	// if --fuel < 0 { unreachable }
	g.emit(opGlobalGet, fuelGlobal, opI32Const, 1, opI32Sub, opGlobalSet, fuelGlobal)
	g.emit(opGlobalGet, fuelGlobal, opI32Const, 0, opI32LtS, opIf, emptyBlock, opUnreachable, opEnd)
	for range 3 {
		g.statement()
	}
	g.statements(8)
	if result != 0 {
		g.value(result, 3)
	}
	f.code = g.b
}

func (g *generator) statements(most int) {
	for range g.pick(most + 1) {
		if g.budget--; g.budget < 0 {
			return
		}
		g.statement()
	}
}

// nested writes a block's contents and its end.
func (g *generator) nested(l label, contents func()) {
	g.labels = append(g.labels, l)
	contents()
	g.labels = g.labels[:len(g.labels)-1]
	g.emit(opEnd)
}

func (g *generator) anyType() ValueType { return []ValueType{I32, I64}[g.pick(2)] }

func (g *generator) local(t ValueType) (uint32, bool) {
	var of []uint32
	for i, l := range g.locals {
		if l == t {
			of = append(of, uint32(i))
		}
	}
	if len(of) == 0 {
		return 0, false
	}
	return of[g.pick(len(of))], true
}

// branch writes a branch to a random block. One to a loop counts.
func (g *generator) branch() {
	depth := g.pick(len(g.labels))
	to := g.labels[len(g.labels)-1-depth]
	if to.passes != 0 {
		g.value(to.passes, 1)
	}
	switch {
	case to.loop:
		g.emit(opLocalGet, to.counter, opI32Const, 1, opI32Sub, opLocalTee, to.counter, opI32Const, 0, opI32GtS)
	case g.pick(4) > 0:
		g.value(I32, 1)
	default:
		// Unconditional, in a block of its own so that the type of what follows is
		// known. What follows is never reached, and may be odd.
		g.emit(opI32Const, 1, opIf, emptyBlock)
		g.nested(label{}, func() {
			if to.passes != 0 {
				g.value(to.passes, 1)
			}
			g.emitIndex(opBr, uint32(depth+1))
			if g.pick(2) == 0 {
				g.emit(opLoop, emptyBlock, opBr, 0, opEnd, opDrop, opBlock, emptyBlock, opBr, 1, opEnd)
			}
		})
		g.emit(opI32Const, 0)
	}
	g.emitIndex(opBrIf, uint32(depth))
	if to.passes != 0 {
		g.emit(opDrop)
	}
}

// address writes an address that is mostly inside of the memory.
func (g *generator) address() {
	g.value(I32, 1)
	if g.pick(30) > 0 {
		g.b = append(appendI32(append(g.b, opI32Const), 0x3fff), opI32And)
	}
}

func (g *generator) statement() {
	switch g.pick(16) {
	case 0, 1:
		t := g.anyType()
		if l, ok := g.local(t); ok {
			g.value(t, 3)
			g.emitIndex(opLocalSet, l)
		}
	case 2:
		g.value(I32, 2)
		g.emit(opGlobalSet, 0)
	case 3:
		g.value(I64, 2)
		g.emit(opGlobalSet, 1)
	case 4:
		g.address()
		g.value(I32, 2)
		g.emit(opI32Store, 2, byte(g.pick(64)))
	case 5:
		g.value(I32, 2)
		g.emit(opIf, emptyBlock)
		g.nested(label{}, func() {
			g.statements(3)
			if g.pick(2) == 0 {
				g.emit(opElse)
				g.statements(3)
			}
		})
	case 6, 7:
		g.loop([]ValueType{0, I32, I64}[g.pick(3)])
	case 8:
		g.loopWithParameter()
	case 9:
		g.emit(opBlock, emptyBlock)
		g.nested(label{}, func() {
			g.statements(2)
			g.branch()
			g.statements(2)
		})
	case 10:
		g.branch()
	case 11:
		g.branchTable()
	case 12:
		g.bulk()
	case 13:
		t := g.anyType()
		g.value(t, 3)
		g.emit(opDrop)
	case 14:
		g.dispatch()
	case 15:
		if g.loops < 2 {
			g.call()
		}
	}
}

// counted writes a loop around a body, which must end with countDown.
func (g *generator) counted(typ byte, passes ValueType, body func()) {
	counter := byte(len(g.locals) + g.loops)
	g.emit(opI32Const, byte(3+g.pick(6)), opLocalSet, counter)
	g.loops++
	g.emit(opLoop, typ)
	g.nested(label{passes: passes, loop: true, counter: counter}, body)
	g.loops--
}

// countDown branches to the head of the innermost loop while its counter lasts.
func (g *generator) countDown() {
	counter := g.labels[len(g.labels)-1].counter
	g.emit(opLocalGet, counter, opI32Const, 1, opI32Sub, opLocalTee, counter, opI32Const, 0, opI32GtS, opBrIf, 0)
}

func (g *generator) loop(result ValueType) {
	if g.loops == maxLoops {
		return
	}
	typ := byte(emptyBlock)
	if result != 0 {
		typ = byte(result)
	}
	g.counted(typ, 0, func() {
		g.statements(4)
		g.countDown()
		if result != 0 {
			g.value(result, 1)
		}
	})
	if result != 0 {
		g.emit(opDrop)
	}
}

func (g *generator) loopWithParameter() {
	if g.loops == maxLoops {
		return
	}
	g.value(I32, 1)
	g.counted(1, I32, func() {
		g.value(I32, 1)
		g.emit(opI32Sub)
		g.statements(3)
		g.countDown()
	})
	g.emit(opDrop)
}

func (g *generator) branchTable() {
	n := 1 + g.pick(4)
	for range n {
		g.emit(opBlock, emptyBlock)
		g.labels = append(g.labels, label{})
	}
	g.value(I32, 2)
	targets := g.pick(6)
	g.emitIndex(opBrTable, uint32(targets))
	for range targets + 1 {
		g.emit(byte(g.pick(n)))
	}
	for range n {
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(opEnd)
		g.statements(1)
	}
}

func (g *generator) bulk() {
	g.address()
	switch g.pick(4) {
	case 0:
		g.value(I32, 1)
		g.length()
		g.emit(opPrefixMisc, miscMemoryFill, 0)
	case 1:
		g.address()
		g.length()
		g.emit(opPrefixMisc, miscMemoryCopy, 0, 0)
	case 2:
		g.emit(opI32Const, byte(g.pick(4)), opI32Const, byte(g.pick(17)), opPrefixMisc, miscMemoryInit, 0, 0)
	case 3:
		g.emit(opDrop, opI32Const, byte(g.pick(3)), 0x40, 0, opDrop) // memory.grow
	}
}

func (g *generator) length() {
	if g.pick(3) == 0 {
		g.b = appendI32(append(g.b, opI32Const), int32(g.pick(2*smallBulk)))
		return
	}
	g.value(I32, 1)
	g.b = append(appendI32(append(g.b, opI32Const), 0xfff), opI32And)
}

// call calls a later function.
func (g *generator) call() {
	if int(g.index) == randomFuncs {
		return
	}
	to := g.index + 1 + uint32(g.pick(randomFuncs-int(g.index)))
	typ := g.p.funcs[to-1].typ
	for _, t := range randomTypes[typ].Params {
		g.value(t, 1)
	}
	if to >= randomFuncs-1 && g.index < randomFuncs-1 && g.pick(2) == 0 {
		// Through the table, sometimes with an index that is beyond it.
		g.emit(opI32Const, byte(g.pick(4)))
		g.emit(opCallIndirect, byte(typ), 0)
	} else {
		g.emitIndex(opCall, to)
	}
	for range randomTypes[typ].Results {
		g.emit(opDrop)
	}
}

// Operators of two operands of one type. Division traps sometimes.
var (
	i32Operators = []byte{0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x74, 0x76, 0x77, opI32Eq, opI32LtS, 0x4f, 0x6d}
	i64Operators = []byte{0x7c, 0x7d, 0x7e, 0x83, 0x84, 0x85, 0x86, 0x88, 0x89, 0x80}
)

// value writes an expression of type i32 or i64, at most so deep.
func (g *generator) value(t ValueType, depth int) {
	choice := g.pick(9)
	if depth == 0 {
		choice = g.pick(3)
	}
	switch choice {
	case 1:
		if l, ok := g.local(t); ok {
			g.emitIndex(opLocalGet, l)
			return
		}
	case 2:
		g.emit(opGlobalGet, byte(map[ValueType]int{I32: 2 * g.pick(2), I64: 1}[t]))
		return
	case 3, 4:
		g.value(t, depth-1)
		g.value(t, depth-1)
		operators := i32Operators
		if t == I64 {
			operators = i64Operators
		}
		g.emit(operators[g.pick(len(operators))])
		return
	case 5: // the other type
		if t == I32 {
			g.value(I64, depth-1)
			g.emit(0xa7) // i32.wrap_i64
		} else {
			g.value(I32, depth-1)
			g.emit(0xac) // i64.extend_i32_s
		}
		return
	case 6:
		g.value(I32, depth-1)
		g.emit(opIf, byte(t))
		g.nested(label{passes: t}, func() {
			g.value(t, depth-1)
			g.emit(opElse)
			g.statements(1)
			g.value(t, depth-1)
		})
		return
	case 7:
		g.value(t, depth-1)
		g.value(t, depth-1)
		g.value(I32, depth-1)
		g.emit(opSelect)
		return
	case 8:
		if t == I32 {
			g.address()
			g.emit(opI32Load, 0, byte(g.pick(64)))
			return
		}
	}
	v := rapid.OneOf(rapid.Int32Range(-3, 70), rapid.Int32()).Draw(g.t, "")
	op := byte(opI32Const)
	if t == I64 {
		op = opI64Const
	}
	g.b = appendI32(append(g.b, op), v)
}
