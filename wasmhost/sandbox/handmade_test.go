package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
)

// Modules that no compiler makes.

// importing is a module that imports a function () -> ().
func importing(mod, name string) []byte {
	imp := append([]byte{1, byte(len(mod))}, mod...)
	imp = append(append(imp, byte(len(name))), name...)
	imp = append(imp, 0, 0)
	m := []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0}
	return append(append(m, 2, byte(len(imp))), imp...)
}

func section(id byte, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

func name(s string) []byte { return append([]byte{byte(len(s))}, s...) }

func body(code ...byte) []byte { return append([]byte{byte(len(code) + 2), 0}, append(code, opEnd)...) }

// starting is a job whose start function adds one to the first word of memory,
// which its task answers.
func starting() []byte {
	return bytes.Join([][]byte{
		{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, []byte{3, 0x60, 0, 0, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7e, 0x60, 1, 0x7f, 1, 0x7e}),
		section(2, []byte{2}, name("quern"), name("yield"), []byte{0, 0}, name("quern"), name("act"), []byte{0, 2}),
		section(3, []byte{3, 0, 0, 1}),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{3}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 3}, name("quern_task_1"), []byte{0, 4}),
		section(8, []byte{2}),
		section(10, []byte{3},
			body(0x41, 0, 0x41, 0, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0), // memory[0] = memory[0] + 1
			body(0x41, 0, 0x10, 1, 0x1a),                                  // act(0)
			body(0x41, 0, 0x35, 2, 0)),                                    // memory[0]
	}, nil)
}

func TestStartFunctionRunsInTheDriverOnly(t *testing.T) {
	w := newWorld(t, starting())
	ran := false
	w.start(&env{act: func(c *Call, n int32) {
		img := w.capture(c, nil)
		for _, s := range []*Slot{w.slot(), w.slot()} {
			for range 2 {
				ran = true
				if ret, _ := run(t, s, TaskConfig{Image: img}); ret != 1 {
					t.Errorf("the start function has run %d times", ret)
				}
			}
		}
	}})
	if !ran {
		t.Error("no task has run")
	}
}

func TestProgramWithoutACache(t *testing.T) {
	for _, compiler := range [][]string{nil, compiler()} {
		w := newWorld(t, starting(), func(o *Options) { o.CacheDir, o.Compiler = "", compiler })
		ran := false
		w.start(&env{act: func(*Call, int32) { ran = true }})
		if !ran {
			t.Error("the driver did nothing")
		}
		if err := w.prog.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// bomb is a job that takes very long to compile: blocks nested deeply in functions
// with very many locals.
func bomb(functions, depth, locals int) []byte {
	section := func(id byte, body []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
	}
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	m := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	m = append(m, section(1, []byte{2, 0x60, 0, 0, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7e})...)
	m = append(m, section(2, join([]byte{1}, name("quern"), name("yield"), []byte{0, 0}))...)
	types := binary.AppendUvarint(nil, uint64(functions+1))
	types = append(append(types, bytes.Repeat([]byte{0}, functions)...), 1)
	m = append(m, section(3, types)...)
	m = append(m, section(5, []byte{1, 0, 1})...)
	last := binary.AppendUvarint(nil, uint64(functions+1))
	m = append(m, section(7, join([]byte{3}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 1},
		name("quern_task_1"), []byte{0}, last))...)
	code := binary.AppendUvarint(nil, uint64(functions+1))
	for range functions {
		body := binary.AppendUvarint([]byte{1}, uint64(locals))
		body = append(body, 0x7f)
		for i := range depth {
			body = append(body, 0x03, 0x40, 0x20) // loop; local.get; local.tee; br_if 0
			body = binary.AppendUvarint(body, uint64(i*7%locals))
			body = append(body, 0x22)
			body = binary.AppendUvarint(body, uint64(i*13%locals))
			body = append(body, 0x0d, 0)
		}
		body = append(body, bytes.Repeat([]byte{opEnd}, depth+1)...)
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	code = append(code, 4, 0, 0x42, 0, opEnd)
	return append(m, section(10, code)...)
}
