package module

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// FormatError says that a file is not a module that can be read: it is
// something else, cut off, malformed, or over a limit.
type FormatError struct {
	Section  string // "code", or "" when the fault is not inside a section
	Function int    // index of the function whose body is at fault, or -1
	Offset   int64  // in the file, in bytes, or -1
	Cause    string
}

func (e *FormatError) Error() string {
	if e.Section == "" && e.Function < 0 && e.Offset < 0 {
		return e.Cause
	}
	var b strings.Builder
	b.WriteString("WebAssembly module")
	if e.Section != "" {
		fmt.Fprintf(&b, ", section %s", e.Section)
	}
	if e.Function >= 0 {
		fmt.Fprintf(&b, ", function %d", e.Function)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ", offset %d", e.Offset)
	}
	b.WriteString(": ")
	b.WriteString(e.Cause)
	return b.String()
}

// reader reads wasm[pos:end]. The first fault sticks: from then on everything
// reads as zero, so that callers look at err once per item.
type reader struct {
	wasm []byte
	pos  int
	end  int
	err  *FormatError
}

func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{Function: -1, Offset: int64(at), Cause: fmt.Sprintf(format, args...)}
	}
	r.pos = r.end
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte(what string) byte {
	if r.pos >= r.end {
		r.fail(r.pos, "ends in the middle of %s", what)
		return 0
	}
	r.pos++
	return r.wasm[r.pos-1]
}

func (r *reader) u32(what string) uint32 {
	v, next := u32(r.wasm[:r.end], r.pos)
	if next < 0 {
		r.fail(r.pos, "no 32-bit number where %s should be", what)
		return 0
	}
	r.pos = next
	return v
}

// count reads the length of a vector, whose items are at least one byte long,
// and holds it against a limit.
func (r *reader) count(what string, limit int) int {
	at := r.pos
	n := int64(r.u32("the number of " + what))
	if n > int64(r.left()) {
		r.fail(at, "announces %d %s in %d bytes", n, what, r.left())
		return 0
	}
	if n > int64(limit) {
		r.fail(at, "%d %s, the limit is %d", n, what, limit)
		return 0
	}
	return int(n)
}

// skip passes over n bytes.
func (r *reader) skip(n int, what string) {
	if n > r.left() {
		r.fail(r.pos, "ends in the middle of %s", what)
		return
	}
	r.pos += n
}

func (r *reader) name(what string) string {
	at := r.pos
	n := r.count("bytes of "+what, maxName)
	b := r.wasm[r.pos : r.pos+n]
	r.pos += n
	if !utf8.Valid(b) {
		r.fail(at, "%s is not UTF-8", what)
		return ""
	}
	return string(b)
}

// maxName is the longest name in bytes of an import, export or custom section.
const maxName = 100_000

// show quotes a name from the module for an error message, cut when long.
func show(name string) string {
	if len(name) > 100 {
		name = name[:100] + "..."
	}
	for _, c := range name {
		if c <= ' ' || c == '"' || c == '\\' || c == utf8.RuneError || c > '~' {
			return fmt.Sprintf("%q", name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// u32 reads an unsigned LEB128 number of at most 32 bits at b[i:] and returns
// where the next item is, or -1 when there is no such number.
func u32(b []byte, i int) (uint32, int) {
	if i < len(b) && b[i] < 0x80 {
		return uint32(b[i]), i + 1
	}
	var v uint32
	for shift := 0; shift < 35 && i < len(b); shift += 7 {
		c := b[i]
		i++
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			if shift == 28 && c > 0x0f {
				return 0, -1
			}
			return v, i
		}
	}
	return 0, -1
}

// signed reads a signed LEB128 number of at most the given bits, 32, 33 or 64,
// and returns where the next item is, or -1 when there is no such number.
func signed(b []byte, i, bits int) (int64, int) {
	var v int64
	for shift := 0; shift < bits && i < len(b); shift += 7 {
		c := b[i]
		i++
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if left := bits - shift; left < 7 {
			// The unused bits of the last byte must repeat the sign.
			if top := int8(c<<1) >> left; top != 0 && top != -1 {
				return 0, -1
			}
		}
		if shift+7 < 64 {
			v = v << (64 - 7 - shift) >> (64 - 7 - shift)
		}
		return v, i
	}
	return 0, -1
}

// appendU32 appends v as unsigned LEB128.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// sizeU32 is the number of bytes that appendU32 appends.
func sizeU32(v uint32) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// appendI32 appends v as signed LEB128.
func appendI32(b []byte, v int32) []byte {
	for v < -64 || v > 63 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}
