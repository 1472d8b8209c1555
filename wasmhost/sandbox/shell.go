package sandbox

import (
	"encoding/binary"
	"errors"
)

// shell is a module with every function's body replaced by one that traps, and
// without what nobody reads at run time. It has the types, imports, exports,
// globals, segments and function names of the original.
//
// wazero decodes and validates a module whenever it is loaded, although the
// machine code comes from the cache; for a Go program that is most of the time
// that a warm start takes. So the cache holds the machine code of the original
// under the name that wazero looks for when it loads the shell. Bodies are only
// read to make machine code; nothing else depends on them.
func shell(wasm []byte) ([]byte, error) {
	const header = 8
	if len(wasm) < header {
		return nil, errShell
	}
	out := append(make([]byte, 0, len(wasm)/2), wasm[:header]...)
	for rest := wasm[header:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errShell
		}
		body := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		switch id {
		case sectionCustom:
			if body = functionNames(body); body == nil {
				continue
			}
		case sectionCode:
			count, n := binary.Uvarint(body)
			if n <= 0 || count > uint64(len(body)) {
				return nil, errShell
			}
			code := binary.AppendUvarint(nil, count)
			for range count {
				code = append(code, 3, 0, opUnreachable, opEnd)
			}
			body = code
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

const (
	sectionCustom = 0
	sectionCode   = 10
	opUnreachable = 0x00
	opEnd         = 0x0b
)

var errShell = errors.New("the rewritten module cannot be read")

// functionNames keeps of the name section the names of functions, and nothing
// of any other custom section.
func functionNames(section []byte) []byte {
	const name = "\x04name"
	if len(section) < len(name) || string(section[:len(name)]) != name {
		return nil
	}
	for rest := section[len(name):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil
		}
		end := 1 + n + int(size)
		if rest[0] == 1 {
			return append([]byte(name), rest[:end]...)
		}
		rest = rest[end:]
	}
	return nil
}
