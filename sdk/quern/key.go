package quern

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// How keys travel: so that comparing their bytes orders them. The host sorts,
// groups and partitions by these bytes and knows no types.
//
//	bool               1 byte
//	integers           big-endian; signed ones with the sign flipped
//	floats             big-endian; negative ones inverted, others with the sign
//	                   set; -0 becomes 0, any NaN the one that sorts last
//	complex            real part, imaginary part
//	string, []byte     alone: as they are; inside others: 00 as 00 ff, ended by 00 01
//	slice              01 before each element, 00 at the end; nil as empty
//	array, struct      elements, fields but those named _
//	time.Time          seconds, nanoseconds, then its MarshalBinary
//	BinaryMarshaler    its bytes, as a string's inside others
//
// Different values have different encodings, but for what the list says. In
// descending order, every byte of the form "inside others" is inverted.

// keyCodec is how a type travels as a key.
type keyCodec struct {
	enc func(e *encoder, p unsafe.Pointer)
	dec func(d *decoder, p unsafe.Pointer)
	// raw says that a key is the bytes of a string.
	raw bool
	// aliases says that decoded keys point into the decoder's bytes.
	aliases bool
}

// keyForm selects among a type's key codecs.
type keyForm struct {
	t          reflect.Type
	descending bool
}

var keyCodecs sync.Map // keyForm -> *keyCodec or *typeError

// keyCodecOf returns T's codec as a key or says why there is none.
func keyCodecOf[T any](descending bool) (*keyCodec, error) {
	form := keyForm{reflect.TypeFor[T](), descending}
	known, ok := keyCodecs.Load(form)
	if !ok {
		b := keyBuilder{root: form.t, open: map[reflect.Type]bool{}}
		var c *keyCodec
		if descending {
			c = inverted(b.build(form.t, ""))
		} else {
			c = b.alone(form.t)
		}
		if b.err != nil {
			known, _ = keyCodecs.LoadOrStore(form, b.err)
		} else {
			known, _ = keyCodecs.LoadOrStore(form, c)
		}
	}
	if err, bad := known.(*typeError); bad {
		return nil, err
	}
	return known.(*keyCodec), nil
}

// decode reads a whole key; false if the bytes are none.
func (k *keyCodec) decode(b []byte, p unsafe.Pointer) bool {
	d := decoder{b: b}
	k.dec(&d, p)
	return !d.bad && d.pos == len(b)
}

type keyBuilder struct {
	root reflect.Type
	open map[reflect.Type]bool
	err  *typeError
}

func (b *keyBuilder) refuse(path, what string) *keyCodec {
	if b.err == nil {
		b.err = &typeError{b.root, path, "be a key", what}
	}
	return &keyCodec{}
}

// alone is the codec of a key that is not part of another.
func (b *keyBuilder) alone(t reflect.Type) *keyCodec {
	if !marshals(t) {
		if t.Kind() == reflect.String {
			return &keyCodec{raw: true, aliases: true,
				enc: func(e *encoder, p unsafe.Pointer) { e.b = append(e.b, *(*string)(p)...) },
				dec: func(d *decoder, p unsafe.Pointer) {
					rest := d.take(uint64(len(d.b) - d.pos))
					*(*string)(p) = unsafe.String(unsafe.SliceData(rest), len(rest))
				},
			}
		}
		if isBytes(t) {
			return &keyCodec{aliases: true,
				enc: func(e *encoder, p unsafe.Pointer) { e.b = append(e.b, *(*[]byte)(p)...) },
				dec: func(d *decoder, p unsafe.Pointer) { *(*[]byte)(p) = d.take(uint64(len(d.b) - d.pos)) },
			}
		}
	}
	return b.build(t, "")
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !marshals(t.Elem())
}

// build is the codec of a key or a part of one.
func (b *keyBuilder) build(t reflect.Type, path string) *keyCodec {
	if b.open[t] {
		return b.refuse(path, "a type that contains itself")
	}
	b.open[t] = true
	defer delete(b.open, t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return timeKey()
	case marshals(t):
		return binaryKey(t)
	case isBytes(t):
		return &keyCodec{aliases: true,
			enc: func(e *encoder, p unsafe.Pointer) { e.escape(*(*[]byte)(p)) },
			dec: func(d *decoder, p unsafe.Pointer) { *(*[]byte)(p) = d.unescape() },
		}
	}
	if c := scalarKey(t); c != nil {
		return c
	}
	switch t.Kind() {
	case reflect.String:
		return &keyCodec{aliases: true,
			enc: func(e *encoder, p unsafe.Pointer) {
				s := *(*string)(p)
				e.escape(unsafe.Slice(unsafe.StringData(s), len(s)))
			},
			dec: func(d *decoder, p unsafe.Pointer) {
				s := d.unescape()
				*(*string)(p) = unsafe.String(unsafe.SliceData(s), len(s))
			},
		}
	case reflect.Slice:
		return b.slice(t, path)
	case reflect.Array:
		n, size := t.Len(), t.Elem().Size()
		c := b.build(t.Elem(), path+"[]")
		return &keyCodec{aliases: c.aliases,
			enc: func(e *encoder, p unsafe.Pointer) {
				for i := range uintptr(n) {
					c.enc(e, unsafe.Add(p, i*size))
				}
			},
			dec: func(d *decoder, p unsafe.Pointer) {
				for i := uintptr(0); i < uintptr(n) && !d.bad; i++ {
					c.dec(d, unsafe.Add(p, i*size))
				}
			},
		}
	case reflect.Struct:
		return b.structure(t, path)
	case reflect.Pointer, reflect.UnsafePointer:
		return b.refuse(path, "a pointer, and addresses mean nothing in another task")
	case reflect.Interface:
		return b.refuse(path, "an interface, whose dynamic type the other side does not know")
	}
	return b.refuse(path, "a "+t.Kind().String()+", which has no order")
}

func (b *keyBuilder) structure(t reflect.Type, path string) *keyCodec {
	s := &keyCodec{}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		c := b.build(f.Type, path+"."+f.Name)
		s.aliases = s.aliases || c.aliases
		fields = append(fields, field{f.Offset, c.enc, c.dec})
	}
	s.enc, s.dec = inOrder(fields)
	return s
}

func (b *keyBuilder) slice(t reflect.Type, path string) *keyCodec {
	elem := t.Elem()
	c := b.build(elem, path+"[]")
	size := elem.Size()
	return &keyCodec{aliases: c.aliases,
		enc: func(e *encoder, p unsafe.Pointer) {
			s := *(*[]byte)(p) // only the header is used
			at := unsafe.Pointer(unsafe.SliceData(s))
			for i := range len(s) {
				e.b = append(e.b, 1)
				c.enc(e, unsafe.Add(at, uintptr(i)*size))
			}
			e.b = append(e.b, 0)
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			s := reflect.New(t).Elem()
			one := reflect.New(elem)
			for {
				var more bool
				decBool(d, unsafe.Pointer(&more))
				if d.bad || !more {
					break
				}
				one.Elem().SetZero()
				c.dec(d, one.UnsafePointer())
				s = reflect.Append(s, one.Elem())
			}
			reflect.NewAt(t, p).Elem().Set(s)
		},
	}
}

// scalarKey is for types of a fixed size without parts, nil for others.
func scalarKey(t reflect.Type) *keyCodec {
	switch t.Kind() {
	case reflect.Bool:
		return &keyCodec{enc: encBool, dec: decBool}
	case reflect.Uint8:
		return &keyCodec{enc: encByte, dec: decByte}
	case reflect.Int8:
		return &keyCodec{
			enc: func(e *encoder, p unsafe.Pointer) { e.b = append(e.b, *(*byte)(p)^0x80) },
			dec: func(d *decoder, p unsafe.Pointer) {
				if b := d.take(1); b != nil {
					*(*byte)(p) = b[0] ^ 0x80
				}
			},
		}
	case reflect.Int16:
		return key16(1 << 15)
	case reflect.Uint16:
		return key16(0)
	case reflect.Int32:
		return key32(1 << 31)
	case reflect.Uint32:
		return key32(0)
	case reflect.Int64:
		return key64(1 << 63)
	case reflect.Uint64:
		return key64(0)
	case reflect.Int:
		return wordKey[int](1 << 63)
	case reflect.Uint:
		return wordKey[uint](0)
	case reflect.Uintptr:
		return wordKey[uintptr](0)
	case reflect.Float32:
		return &keyCodec{enc: encFloat32Key, dec: decFloat32Key}
	case reflect.Float64:
		return &keyCodec{enc: encFloat64Key, dec: decFloat64Key}
	case reflect.Complex64:
		return &keyCodec{
			enc: func(e *encoder, p unsafe.Pointer) { encFloat32Key(e, p); encFloat32Key(e, unsafe.Add(p, 4)) },
			dec: func(d *decoder, p unsafe.Pointer) { decFloat32Key(d, p); decFloat32Key(d, unsafe.Add(p, 4)) },
		}
	case reflect.Complex128:
		return &keyCodec{
			enc: func(e *encoder, p unsafe.Pointer) { encFloat64Key(e, p); encFloat64Key(e, unsafe.Add(p, 8)) },
			dec: func(d *decoder, p unsafe.Pointer) { decFloat64Key(d, p); decFloat64Key(d, unsafe.Add(p, 8)) },
		}
	}
	return nil
}

func key16(flip uint16) *keyCodec {
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) { e.b = binary.BigEndian.AppendUint16(e.b, *(*uint16)(p)^flip) },
		dec: func(d *decoder, p unsafe.Pointer) {
			if b := d.take(2); b != nil {
				*(*uint16)(p) = binary.BigEndian.Uint16(b) ^ flip
			}
		},
	}
}

func key32(flip uint32) *keyCodec {
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) { e.b = binary.BigEndian.AppendUint32(e.b, *(*uint32)(p)^flip) },
		dec: func(d *decoder, p unsafe.Pointer) {
			if b := d.take(4); b != nil {
				*(*uint32)(p) = binary.BigEndian.Uint32(b) ^ flip
			}
		},
	}
}

func key64(flip uint64) *keyCodec {
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) { e.b = binary.BigEndian.AppendUint64(e.b, *(*uint64)(p)^flip) },
		dec: func(d *decoder, p unsafe.Pointer) {
			if b := d.take(8); b != nil {
				*(*uint64)(p) = binary.BigEndian.Uint64(b) ^ flip
			}
		},
	}
}

// wordKey is for integers whose size is the platform's: always 8 bytes.
func wordKey[T int | uint | uintptr](flip uint64) *keyCodec {
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) {
			e.b = binary.BigEndian.AppendUint64(e.b, uint64(*(*T)(p))^flip)
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			if b := d.take(8); b != nil {
				*(*T)(p) = T(binary.BigEndian.Uint64(b) ^ flip)
			}
		},
	}
}

func encFloat64Key(e *encoder, p unsafe.Pointer) {
	f := *(*float64)(p)
	var u uint64
	switch {
	case f != f:
		u = math.Float64bits(math.NaN()) | 1<<63
	case f < 0:
		u = ^math.Float64bits(f)
	default:
		u = math.Float64bits(f) | 1<<63 // also -0
	}
	e.b = binary.BigEndian.AppendUint64(e.b, u)
}

func decFloat64Key(d *decoder, p unsafe.Pointer) {
	if b := d.take(8); b != nil {
		u := binary.BigEndian.Uint64(b)
		if u>>63 == 1 {
			u &^= 1 << 63
		} else {
			u = ^u
		}
		*(*float64)(p) = math.Float64frombits(u)
	}
}

func encFloat32Key(e *encoder, p unsafe.Pointer) {
	f := *(*float32)(p)
	var u uint32
	switch {
	case f != f:
		u = math.Float32bits(float32(math.NaN())) | 1<<31
	case f < 0:
		u = ^math.Float32bits(f)
	default:
		u = math.Float32bits(f) | 1<<31
	}
	e.b = binary.BigEndian.AppendUint32(e.b, u)
}

func decFloat32Key(d *decoder, p unsafe.Pointer) {
	if b := d.take(4); b != nil {
		u := binary.BigEndian.Uint32(b)
		if u>>31 == 1 {
			u &^= 1 << 31
		} else {
			u = ^u
		}
		*(*float32)(p) = math.Float32frombits(u)
	}
}

// escape appends bytes in the form that is used inside other keys.
func (e *encoder) escape(s []byte) {
	for {
		i := bytes.IndexByte(s, 0)
		if i < 0 {
			break
		}
		e.b = append(append(e.b, s[:i]...), 0, 0xff)
		s = s[i+1:]
	}
	e.b = append(append(e.b, s...), 0, 1)
}

// unescape reads what escape has written. Without zeros in it, the result points
// into the decoder's bytes.
func (d *decoder) unescape() []byte {
	var out []byte
	for rest := d.b[d.pos:]; ; {
		i := bytes.IndexByte(rest, 0)
		if i < 0 || i+1 >= len(rest) || rest[i+1] != 1 && rest[i+1] != 0xff {
			d.damaged()
			return nil
		}
		part := rest[:i:i]
		end := rest[i+1] == 1
		rest = rest[i+2:]
		if end {
			d.pos = len(d.b) - len(rest)
			if out == nil {
				return part
			}
			return append(out, part...)
		}
		out = append(append(out, part...), 0)
	}
}

func timeKey() *keyCodec {
	content := binaryKey(reflect.TypeFor[time.Time]())
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) {
			t := *(*time.Time)(p)
			e.b = binary.BigEndian.AppendUint64(e.b, uint64(t.Unix())^1<<63)
			e.b = binary.BigEndian.AppendUint32(e.b, uint32(t.Nanosecond()))
			content.enc(e, p)
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			d.take(12)
			content.dec(d, p)
		},
	}
}

func binaryKey(t reflect.Type) *keyCodec {
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) { e.escape(marshal(t, p)) },
		dec: func(d *decoder, p unsafe.Pointer) {
			if b := bytes.Clone(d.unescape()); !d.bad && !unmarshal(t, p, b) {
				d.damaged()
			}
		},
	}
}

// inverted turns a codec's order around.
func inverted(c *keyCodec) *keyCodec {
	return &keyCodec{
		enc: func(e *encoder, p unsafe.Pointer) {
			start := len(e.b)
			c.enc(e, p)
			for i := range e.b[start:] {
				e.b[start+i] ^= 0xff
			}
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			plain := bytes.Clone(d.take(uint64(len(d.b) - d.pos)))
			for i := range plain {
				plain[i] ^= 0xff
			}
			if !c.decode(plain, p) {
				d.damaged()
			}
		},
	}
}

// keyError adds to a refusal what would help.
func keyError(err error) error {
	return fmt.Errorf("%w; use a key of numbers, strings, booleans, arrays or structs of them", err)
}
