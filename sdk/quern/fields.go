package quern

import (
	"math/bits"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// knownFlatMap is a form of f, a function that makes several results of one, that
// yields them one by one; nil if there is none. strings.Fields and FieldsSeq are
// what most jobs on text begin with, and two thirds of their time in a sandbox
// goes into slices and iterators that are not needed here.
func knownFlatMap[T, R, F any](f F) func(v T, yield func(R) bool) bool {
	if code := entry(f); bigEndian || code != entry(strings.Fields) && code != entry(strings.FieldsSeq) {
		return nil
	}
	fast, _ := any(yieldFields).(func(T, func(R) bool) bool)
	return fast
}

// bigEndian platforms can only be native ones.
const bigEndian = runtime.GOARCH == "s390x" || runtime.GOARCH == "ppc64" || runtime.GOARCH == "mips" || runtime.GOARCH == "mips64"

// yieldFields yields what strings.Fields returns, and answers false when yield
// has. It looks at eight bytes a step: steps are what costs in a sandbox.
func yieldFields(s string, yield func(string) bool) bool {
	for i := 0; ; {
		// To the next word.
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		if i >= len(s) {
			return true
		}
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf {
			if space, size := spaceAt(s[i:]); space {
				i += size
				continue
			}
		}
		// To its end.
		start := i
		for {
			n := plainBytes(s, i)
			i += n
			if n == 8 {
				continue
			}
			if i >= len(s) || s[i] == ' ' {
				break
			}
			space, size := spaceAt(s[i:])
			if space {
				break
			}
			i += size
		}
		if !yield(s[start:i]) {
			return false
		}
	}
}

// plainBytes is the number of bytes of s from i on that are neither below "!" nor
// above ASCII, at most 8.
func plainBytes(s string, i int) int {
	const ones = 0x0101010101010101
	p := unsafe.Pointer(unsafe.StringData(s))
	var x uint64
	switch rest := len(s) - i; {
	case rest >= 8:
		x = *(*uint64)(unsafe.Add(p, i))
	case len(s) >= 8: // zeros behind the end, which are not plain
		x = *(*uint64)(unsafe.Add(p, len(s)-8)) >> (64 - 8*uint(rest))
	default:
		for j := len(s) - 1; j >= i; j-- {
			x = x<<8 | uint64(s[j])
		}
	}
	odd := (^(x&(0x7f*ones) + 0x5f*ones) | x) & (0x80 * ones)
	return bits.TrailingZeros64(odd) / 8
}

// spaceAt says whether s begins with a space, and how long its first rune is.
func spaceAt(s string) (bool, int) {
	switch c := s[0]; {
	case c == ' ' || '\t' <= c && c <= '\r':
		return true, 1
	case c < utf8.RuneSelf:
		return false, 1
	}
	r, size := utf8.DecodeRuneInString(s)
	return unicode.IsSpace(r), size
}
