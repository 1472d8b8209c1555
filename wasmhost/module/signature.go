package module

import (
	"fmt"
	"slices"
	"strings"
)

// ValueType is a type of WebAssembly values in its binary encoding, which is
// also that of wazero's api.ValueType.
type ValueType byte

const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type(%#x)", byte(t))
}

func (t ValueType) isReference() bool { return t == FuncRef || t == ExternRef }

func (t ValueType) valid() bool {
	return t >= V128 && t <= I32 || t.isReference()
}

// Signature is the type of a function.
type Signature struct {
	Params  []ValueType
	Results []ValueType
}

// String is such as "(i32, i32) -> i64", "() -> ()" or "(f64) -> (i32, i32)".
func (s Signature) String() string {
	var b strings.Builder
	b.WriteByte('(')
	list(&b, s.Params)
	b.WriteString(") -> ")
	if len(s.Results) == 1 {
		b.WriteString(s.Results[0].String())
		return b.String()
	}
	b.WriteByte('(')
	list(&b, s.Results)
	b.WriteByte(')')
	return b.String()
}

func list(b *strings.Builder, types []ValueType) {
	for i, t := range types {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.String())
	}
}

// Equal says whether two signatures are the same type.
func (s Signature) Equal(t Signature) bool {
	return slices.Equal(s.Params, t.Params) && slices.Equal(s.Results, t.Results)
}

// arity is the number of values that a call passes.
func (s Signature) arity() int { return len(s.Params) + len(s.Results) }

// append appends the type in its binary form.
func (s Signature) append(b []byte) []byte {
	b = append(b, functionType)
	for _, types := range [][]ValueType{s.Params, s.Results} {
		b = appendU32(b, uint32(len(types)))
		for _, t := range types {
			b = append(b, byte(t))
		}
	}
	return b
}

// functionType is the first byte of a function type.
const functionType = 0x60
