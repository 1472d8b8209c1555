package e2e_test

import (
	"bytes"
	"encoding/binary"
)

// Modules that no compiler makes.

const header = "\x00asm\x01\x00\x00\x00"

func section(id byte, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

func name(s string) []byte { return append([]byte{byte(len(s))}, s...) }

func body(code ...byte) []byte {
	code = append(code, 0x0b) // end
	return append(binary.AppendUvarint(nil, uint64(len(code))), code...)
}

// importing is a module that imports a function () -> ().
func importing(mod, function string) []byte {
	return bytes.Join([][]byte{
		[]byte(header),
		section(1, []byte{1, 0x60, 0, 0}),
		section(2, []byte{1}, name(mod), name(function), []byte{0, 0}),
	}, nil)
}

// exiting is the smallest job: main ends with an exit code, and there are no
// tasks. It comes with functions that nobody calls.
func exiting(code byte, others ...[]byte) []byte {
	functions := append([]byte{byte(2 + len(others)), 0, 1}, make([]byte, len(others))...)
	return bytes.Join([][]byte{
		[]byte(header),
		section(1, []byte{3, // types
			0x60, 0, 0, // () -> ()
			0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7e, // (i32, i32, i32) -> i64
			0x60, 1, 0x7f, 0, // (i32) -> ()
		}),
		section(2, []byte{2}, name("quern"), name("yield"), []byte{0, 0}, name("wasi_snapshot_preview1"), name("proc_exit"), []byte{0, 2}),
		section(3, functions),
		section(5, []byte{1, 0, 1}), // a page of memory
		section(7, []byte{3}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 2}, name("quern_task_1"), []byte{0, 3}),
		section(10, []byte{byte(2 + len(others))},
			body(0, 0x41, code, 0x10, 1), // no locals; i32.const code; call proc_exit
			body(0, 0x42, 0),             // no locals; i64.const 0
			bytes.Join(others, nil)),
	}, nil)
}

// bomb is a function that keeps a compiler busy: locals that live across deeply
// nested loops.
func bomb(locals, loops uint64) []byte {
	code := binary.AppendUvarint([]byte{1}, locals)
	code = append(code, 0x7e) // i64
	for i := range loops {
		code = append(code, 0x03, 0x40) // loop
		for j := range uint64(4) {
			code = append(code, 0x20) // local.get
			code = binary.AppendUvarint(code, (i*7+j*3)%locals)
			code = append(code, 0x21) // local.set
			code = binary.AppendUvarint(code, (i*5+j)%locals)
		}
	}
	code = append(code, bytes.Repeat([]byte{0x0b}, int(loops))...) // end
	return body(code...)
}

// long is a function that is only long: so many bytes of code that store numbers.
func long(size int) []byte {
	const store = "\x20\x00\x20\x01\x37\x03\x08" // i64.store offset 8 (local 0) (local 1)
	code := append([]byte{2, 1, 0x7f, 1, 0x7e}, bytes.Repeat([]byte(store), size/len(store))...)
	return body(code...)
}
