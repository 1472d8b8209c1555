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
// has. It looks at eight bytes a step, and all is in one function: steps and calls
// are what costs in a sandbox.
func yieldFields(s string, yield func(string) bool) bool {
	const ones = 0x0101010101010101
	text := unsafe.Pointer(unsafe.StringData(s))
	start := 0 // behind the last space, or inside of it: of the next word
	for i := 0; i < len(s); i += 8 {
		var x uint64
		left := uint(len(s) - i)
		switch {
		case left >= 8:
			x = *(*uint64)(unsafe.Add(text, i))
		case len(s) >= 8:
			x = *(*uint64)(unsafe.Add(text, len(s)-8)) >> (64 - 8*left)
		default:
			for j := len(s) - 1; j >= 0; j-- {
				x = x<<8 | uint64(s[j])
			}
		}
		// The high bit of each byte below "!" or above ASCII. Others end no word.
		odd := (^(x&(0x7f*ones) + 0x5f*ones) | x) & (0x80 * ones)
		if left < 8 {
			odd &= 1<<(8*left) - 1
		}
		for ; odd != 0; odd &= odd - 1 {
			at := i + bits.TrailingZeros64(odd)/8
			size := 1
			if c := s[at]; c != ' ' && c-'\t' > '\r'-'\t' {
				if c < utf8.RuneSelf || at < start {
					continue
				}
				var space bool
				if space, size = spaceAt(s[at:]); !space {
					continue
				}
			}
			if start < at && !yield(s[start:at]) {
				return false
			}
			start = at + size
		}
	}
	return start >= len(s) || yield(s[start:])
}

// spaceAt says whether s, which begins with a byte above ASCII, begins with a
// space, and how long it is. No byte in the middle of a rune looks like the first
// one of a space, so each may be tried.
func spaceAt(s string) (bool, int) {
	switch s[0] {
	case 0xc2, 0xe1, 0xe2, 0xe3: // first bytes of all spaces above ASCII
		r, size := utf8.DecodeRuneInString(s)
		return unicode.IsSpace(r), size
	}
	return false, 1
}
