package quern

import (
	"encoding/binary"
	"math"
	"reflect"
	"unsafe"
)

// scalarCodec is the codec of a type without parts, nil for others.
func scalarCodec(t reflect.Type) *codec {
	switch t.Kind() {
	case reflect.Bool:
		return &codec{encBool, decBool, 1, false, true}
	case reflect.Int8, reflect.Uint8:
		return &codec{encByte, decByte, 1, false, true}
	case reflect.Int16:
		return signedCodec[int16]()
	case reflect.Int32:
		return signedCodec[int32]()
	case reflect.Int64:
		return signedCodec[int64]()
	case reflect.Int:
		return signedCodec[int]()
	case reflect.Uint16:
		return unsignedCodec[uint16]()
	case reflect.Uint32:
		return unsignedCodec[uint32]()
	case reflect.Uint64:
		return unsignedCodec[uint64]()
	case reflect.Uint:
		return unsignedCodec[uint]()
	case reflect.Uintptr:
		return unsignedCodec[uintptr]()
	case reflect.Float32:
		return &codec{encFloat32, decFloat32, 4, false, true}
	case reflect.Float64:
		return &codec{encFloat64, decFloat64, 8, false, true}
	case reflect.Complex64:
		return &codec{encComplex64, decComplex64, 8, false, true}
	case reflect.Complex128:
		return &codec{encComplex128, decComplex128, 16, false, true}
	case reflect.String:
		return &codec{encString, decString, 1, true, true}
	}
	return nil
}

func encBool(e *encoder, p unsafe.Pointer) {
	b := byte(0)
	if *(*bool)(p) {
		b = 1
	}
	e.b = append(e.b, b)
}

func decBool(d *decoder, p unsafe.Pointer) {
	if d.pos >= len(d.b) || d.b[d.pos] > 1 {
		d.damaged()
		return
	}
	*(*bool)(p) = d.b[d.pos] == 1
	d.pos++
}

func encByte(e *encoder, p unsafe.Pointer) { e.b = append(e.b, *(*byte)(p)) }

func decByte(d *decoder, p unsafe.Pointer) {
	if d.pos >= len(d.b) {
		d.damaged()
		return
	}
	*(*byte)(p) = d.b[d.pos]
	d.pos++
}

func signedCodec[T int | int16 | int32 | int64]() *codec {
	return &codec{
		enc: func(e *encoder, p unsafe.Pointer) {
			v := int64(*(*T)(p))
			e.uvarint(uint64(v)<<1 ^ uint64(v>>63))
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			u := d.uvarint()
			v := int64(u>>1) ^ -int64(u&1)
			if int64(T(v)) != v {
				d.damaged()
				return
			}
			*(*T)(p) = T(v)
		},
		least: 1, flat: true,
	}
}

func unsignedCodec[T uint | uint16 | uint32 | uint64 | uintptr]() *codec {
	return &codec{
		enc: func(e *encoder, p unsafe.Pointer) { e.uvarint(uint64(*(*T)(p))) },
		dec: func(d *decoder, p unsafe.Pointer) {
			v := d.uvarint()
			if uint64(T(v)) != v {
				d.damaged()
				return
			}
			*(*T)(p) = T(v)
		},
		least: 1, flat: true,
	}
}

func encFloat32(e *encoder, p unsafe.Pointer) {
	e.b = binary.LittleEndian.AppendUint32(e.b, math.Float32bits(*(*float32)(p)))
}

func decFloat32(d *decoder, p unsafe.Pointer) {
	if b := d.take(4); b != nil {
		*(*float32)(p) = math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
}

func encFloat64(e *encoder, p unsafe.Pointer) {
	e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(*(*float64)(p)))
}

func decFloat64(d *decoder, p unsafe.Pointer) {
	if b := d.take(8); b != nil {
		*(*float64)(p) = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

// A complex number is two floats, one after the other.

func encComplex64(e *encoder, p unsafe.Pointer) {
	encFloat32(e, p)
	encFloat32(e, unsafe.Add(p, 4))
}

func decComplex64(d *decoder, p unsafe.Pointer) {
	decFloat32(d, p)
	decFloat32(d, unsafe.Add(p, 4))
}

func encComplex128(e *encoder, p unsafe.Pointer) {
	encFloat64(e, p)
	encFloat64(e, unsafe.Add(p, 8))
}

func decComplex128(d *decoder, p unsafe.Pointer) {
	decFloat64(d, p)
	decFloat64(d, unsafe.Add(p, 8))
}

func encString(e *encoder, p unsafe.Pointer) {
	s := *(*string)(p)
	e.uvarint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// decString makes a string of the decoder's bytes, which therefore must not
// change any more.
func decString(d *decoder, p unsafe.Pointer) {
	b := d.take(d.uvarint())
	*(*string)(p) = unsafe.String(unsafe.SliceData(b), len(b))
}
