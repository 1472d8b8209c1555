package module

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// bulkJob exports fill and copy, of type (i32, i32, i32) -> (), on a memory of
// that many pages.
func bulkJob(pages uint32) *blueprint {
	b := job()
	b.memory = []uint32{pages, pages}
	b.types = append(b.types, Signature{Params: []ValueType{I32, I32, I32}})
	operands := []byte{opLocalGet, 0, opLocalGet, 1, opLocalGet, 2}
	b.funcs = append(b.funcs,
		funcPrint{typ: 2, code: append(operands[:6:6], opPrefixMisc, miscMemoryFill, 0)},
		funcPrint{typ: 2, code: append(operands[:6:6], opPrefixMisc, miscMemoryCopy, 0, 0)})
	b.exports = append(b.exports, ExportInfo{Name: "fill", Index: 3}, ExportInfo{Name: "copy", Index: 4})
	return b
}

// TestBulkInPieces: instructions on more than a piece do what the original
// ones do, whatever overlaps, and trap as they do before anything is written.
func TestBulkInPieces(t *testing.T) {
	t.Parallel()
	const piece, size = bulkPiece, 4 * bulkPiece
	wasm := bulkJob(size >> 16).wasm()
	o := jobOptions()
	o.MaxPages, o.Interval = 0, 1<<16
	h := newHost(t, wazero.NewRuntimeConfig())
	yields := 0
	h.onYield = func() { yields++ }
	original, rewritten := h.instance(t, wasm), h.instance(t, prepare(t, wasm, o).Code)

	memory := func(m api.Module) []byte {
		b, _ := m.Memory().Read(0, m.Memory().Size())
		return b
	}
	pattern := make([]byte, size)
	for i := range pattern {
		pattern[i] = byte(i>>16*7 + i>>8*3 + i)
	}
	type operands [3]uint32
	for _, test := range []struct {
		name  string
		traps bool
		args  []operands
	}{
		{"fill", false, []operands{
			{0, 7, 0}, {size, 7, 0}, {5, 7, 300}, {3, 7, piece - 100}, {3, 0x1234, piece}, {1, 7, piece + 1},
			{0, 9, piece + piece/2}, {1, 7, 2*piece + 1}, {0, 9, 3 * piece}, {size - 3*piece, 9, 3 * piece}, {0, 7, size},
		}},
		{"fill", true, []operands{
			{size + 1, 7, 0}, {size, 7, 1}, {1, 7, size}, {size - piece, 7, piece + 1}, {0, 7, size + 1},
			{1 << 31, 7, 1 << 31}, {0xffffffff, 7, 0xffffffff}, {size, 7, -piece & 0xffffffff}, {0, 7, 0xffffffff},
		}},
		{"copy", false, []operands{
			{0, 0, 0}, {size, size, 0}, {0, 10, piece}, {10, 0, piece}, {piece, 0, piece}, {0, piece, piece},
			{0, 1, piece + 1}, {1, 0, piece + 1}, {0, piece, piece + 7}, {piece, 0, piece + 7}, {9, 9, piece + 1},
			{0, piece, 3 * piece}, {piece, 0, 3 * piece}, {0, 1, 3 * piece}, {1, 0, 3 * piece}, {0, piece - 1, 3 * piece},
			{piece - 1, 0, 3 * piece}, {0, piece + 1, 2*piece + 9}, {piece + 1, 0, 2*piece + 9}, {0, piece / 2, 3 * piece},
			{piece/2 + 1, 1, 3 * piece}, {0, 0, size},
		}},
		{"copy", true, []operands{
			{size + 1, 0, 0}, {0, size + 1, 0}, {1, 0, size}, {0, 1, size}, {size - piece, 0, piece + 1},
			{0, size - piece, piece + 1}, {0xffffffff, 0, 0xffffffff}, {0, 0xffffffff, 0xffffffff}, {5, 9, 0xffffffff},
		}},
	} {
		for _, args := range test.args {
			var ends [2]string
			for i, m := range []api.Module{original, rewritten} {
				copy(memory(m), pattern)
				if i == 1 { // a counter that has just been set
					m.ExportedGlobal("quern:g0").(api.MutableGlobal).Set(1 << 16)
				}
				yields = 0
				_, err := m.ExportedFunction(test.name).Call(context.Background(), uint64(args[0]), uint64(args[1]), uint64(args[2]))
				ends[i] = cause(err)
			}
			if ends[0] != ends[1] {
				t.Errorf("%s%d ends with %q, originally with %q", test.name, args, ends[1], ends[0])
			}
			if !bytes.Equal(memory(original), memory(rewritten)) {
				t.Errorf("%s%d leaves another memory than the original", test.name, args)
			}
			if trapped := ends[0] != cause(nil); trapped != test.traps {
				t.Errorf("%s%d ends with %q", test.name, args, ends[0])
			}
			if want := int(args[2] / piece); !test.traps && yields != want {
				t.Errorf("%s%d calls the host %d times, want %d", test.name, args, yields, want)
			}
		}
	}
}

// TestConstantBulk: a small constant number of bytes needs no call, one on the
// stack that only looks like it does.
func TestConstantBulk(t *testing.T) {
	for _, test := range []struct {
		name   string
		length []byte
		calls  bool
	}{
		{"0", []byte{opI32Const, 0}, false},
		{"256", []byte{opI32Const, 0x80, 2}, false},
		{"256 in five bytes", []byte{opI32Const, 0x80, 0x82, 0x80, 0x80, 0}, false},
		{"257", []byte{opI32Const, 0x81, 2}, true},
		{"-1", []byte{opI32Const, 0x7f}, true},
		{"a local", []byte{opLocalGet, 0}, true},
		{"behind a block", []byte{opBlock, byte(I32), opLocalGet, 0, opI32Const, 1, opBrIf, 0, opEnd}, true},
		{"behind an operation", []byte{opI32Const, 1, opI32Const, 2, opI32Sub}, true},
	} {
		for name, instruction := range map[string][]byte{
			"fill":       {opPrefixMisc, miscMemoryFill, 0},
			"fill, long": {opPrefixMisc, miscMemoryFill | 0x80, 0x80, 0, 0},
			"copy":       {opPrefixMisc, miscMemoryCopy, 0, 0},
			"init":       {opPrefixMisc, miscMemoryInit, 0, 0},
		} {
			t.Run(fmt.Sprint(name, ", ", test.name), func(t *testing.T) {
				b := job()
				b.data = []string{"data"}
				b.function(append(append([]byte{opI32Const, 0, opI32Const, 0}, test.length...), instruction...), I32)
				p := prepare(t, b.wasm(), jobOptions())
				info, err := Inspect(p.Code, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if calls := info.Functions > p.Info.Functions; calls != test.calls {
					t.Errorf("a function is added: %v", calls)
				}
				newHost(t, wazero.NewRuntimeConfigCompiler()).instance(t, p.Code)
			})
		}
	}
}
