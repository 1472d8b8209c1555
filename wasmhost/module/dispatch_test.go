package module

import (
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestBranchesOfADispatchAreDirect counts how often a chain of blocks comes by
// the loop's head.
func TestBranchesOfADispatchAreDirect(t *testing.T) {
	// The blocks set the values in next one after the other, beginning with that
	// of local 0, which is 0; the last one leaves.
	chain := func(next []byte, jump func(value byte) []byte) []byte {
		code := []byte{opLoop, emptyBlock}
		for range next {
			code = append(code, opBlock, emptyBlock)
		}
		code = append(code, opLocalGet, 0, opBrTable, byte(len(next)-1))
		for k := range next {
			code = append(code, byte(k))
		}
		for k, value := range next {
			code = append(code, opEnd)
			if int(value) < len(next) {
				toLoop := byte(len(next) - 1 - k)
				code = append(code, jump(value)...)
				code = append(code, opBr, toLoop)
			} else {
				code = append(code, opReturn)
			}
		}
		return append(code, opEnd)
	}
	set := func(value byte) []byte { return []byte{opI32Const, value, opLocalSet, 0} }
	for _, test := range []struct {
		name string
		code []byte
		want int
	}{
		{"forwards", chain([]byte{1, 2, 3, 4}, set), 1},
		{"forwards over some", chain([]byte{2, 9, 3, 9}, set), 1},
		{"backwards", chain([]byte{3, 9, 1, 2}, set), 3},
		{"to itself and forwards", chain([]byte{1, 3, 9, 2}, set), 2},
		{"by the last label", chain([]byte{2, 9, 9}, func(byte) []byte { return set(13) }), 1},
		{"not by a constant", chain([]byte{1, 2, 3, 4}, func(v byte) []byte {
			return []byte{opI32Const, v, opI32Eqz, opI32Eqz, opDrop, opI32Const, v, 0x01, opLocalSet, 0}
		}), 4},
		{"not of the variable", chain([]byte{1, 2, 9}, func(v byte) []byte {
			return append(set(v), opI32Const, 2, opLocalSet, 1)
		}), 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := job()
			b.function(test.code, I32, I32)
			b.exports = append(b.exports, ExportInfo{Name: "run", Index: 3})
			o := jobOptions()
			o.Interval = 1
			h := newHost(t, wazero.NewRuntimeConfig())
			have := 0
			h.onYield = func() {
				if have++; have > 100 {
					panic("does not end")
				}
			}
			if _, err := h.instance(t, prepare(t, b.wasm(), o).Code).ExportedFunction("run").Call(context.Background()); err != nil {
				t.Fatal(err)
			}
			if have != test.want {
				t.Errorf("the loop's head is passed %d times, want %d", have, test.want)
			}
		})
	}
}

// dispatch writes a loop that dispatches by a local, with branches by constants
// and others, forwards and, while a counter lasts, backwards.
func (g *generator) dispatch() {
	variable, ok := g.local(I32)
	if !ok || g.loops == maxLoops {
		return
	}
	n := 2 + g.pick(6)
	g.counted(emptyBlock, 0, func() {
		loop := len(g.labels) - 1
		counter := g.labels[loop].counter
		for range n {
			g.emit(opBlock, emptyBlock)
			g.labels = append(g.labels, label{})
		}
		g.emitIndex(opLocalGet, variable)
		g.emitIndex(opBrTable, uint32(n-1))
		for k := range n {
			g.emit(byte([]int{k, g.pick(n)}[g.pick(2)]))
		}
		for range n {
			g.labels = g.labels[:len(g.labels)-1]
			g.emit(opEnd)
			g.statements(2)
			if g.pick(3) > 0 {
				// if --counter > 0 { variable = constant; branch to the loop }
				g.emit(opLocalGet, counter, opI32Const, 1, opI32Sub, opLocalTee, counter, opI32Const, 0, opI32GtS)
				nested := g.pick(3) > 0
				if nested {
					g.emit(opIf, emptyBlock)
				}
				g.emit(opI32Const, byte(g.pick(n+2)))
				g.emitIndex(opLocalSet, variable)
				if l, ok := g.local(I32); ok && g.pick(5) == 0 {
					g.emit(opI32Const, byte(g.pick(n)))
					g.emitIndex(opLocalSet, l)
				}
				depth := uint32(len(g.labels) - 1 - loop)
				if nested {
					g.emitIndex(opBr, depth+1)
					g.emit(opEnd)
				} else {
					g.emitIndex(opBrIf, depth)
				}
			}
		}
	})
}

// TestDispatchIsOfItsLoop: what looks like the end of a dispatch, but is not.
func TestDispatchIsOfItsLoop(t *testing.T) {
	table := []byte{opLocalGet, 0, opBrTable, 1, 0, 1}
	for name, code := range map[string][]byte{
		// A branch by value 1 in another loop, after the dispatch's has ended.
		"another loop": slices.Concat(
			[]byte{opLoop, emptyBlock, opBlock, emptyBlock, opBlock, emptyBlock}, table, []byte{opEnd, opEnd, opEnd},
			[]byte{opBlock, emptyBlock, opLoop, emptyBlock, opLocalGet, 1, opBrIf, 1, opI32Const, 1, opLocalSet, 1,
				opI32Const, 1, opLocalSet, 0, opBr, 0, opEnd, opEnd}),
		// A branch by value 1, to a loop inside of the dispatch's.
		"an inner loop": slices.Concat(
			[]byte{opLoop, emptyBlock, opBlock, emptyBlock, opBlock, emptyBlock}, table, []byte{opEnd},
			[]byte{opBlock, emptyBlock, opLoop, emptyBlock, opLocalGet, 1, opBrIf, 1, opI32Const, 1, opLocalSet, 1,
				opI32Const, 1, opLocalSet, 0, opBr, 0, opEnd, opEnd},
			[]byte{opI32Const, 7, opLocalSet, 2, opEnd, opEnd}),
		// The block of value 0 has ended, and another one is in its place.
		"another block": slices.Concat(
			[]byte{opLoop, emptyBlock, opBlock, emptyBlock, opBlock, emptyBlock}, table, []byte{opEnd},
			[]byte{opBlock, emptyBlock, opLocalGet, 1, opBrIf, 0, opI32Const, 1, opLocalSet, 1,
				opI32Const, 0, opLocalSet, 0, opBr, 2, opEnd},
			[]byte{opI32Const, 7, opLocalSet, 2, opEnd, opEnd}),
		// Something happens before the dispatch.
		"a head with work": slices.Concat(
			[]byte{opLoop, emptyBlock, opBlock, emptyBlock, opBlock, emptyBlock},
			[]byte{opLocalGet, 2, opI32Const, 1, 0x6a, opLocalSet, 2}, table, []byte{opEnd},
			[]byte{opI32Const, 1, opLocalSet, 0, opBr, 1, opEnd, opEnd}),
	} {
		t.Run(name, func(t *testing.T) {
			b := job()
			b.types = append(b.types, Signature{Results: []ValueType{I32}})
			b.function(append(code, opLocalGet, 2), I32, I32, I32)
			b.funcs[len(b.funcs)-1].typ = uint32(len(b.types) - 1)
			b.exports = append(b.exports, ExportInfo{Name: "run", Index: 3})
			h := newHost(t, wazero.NewRuntimeConfig())
			var results [2][]uint64
			for i, code := range [][]byte{b.wasm(), prepare(t, b.wasm(), jobOptions()).Code} {
				var err error
				if results[i], err = h.instance(t, code).ExportedFunction("run").Call(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(results[0], results[1]) {
				t.Errorf("%v rewritten, %v as it was", results[1], results[0])
			}
		})
	}
}
