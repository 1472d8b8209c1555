package quern

import (
	"reflect"
	"strconv"
	"unsafe"
)

// slice of any element. nil and empty stay what they are.
func (b *codecBuilder) slice(t reflect.Type, path string) *codec {
	elem := t.Elem()
	if elem.Kind() == reflect.Uint8 || elem.Kind() == reflect.Int8 {
		if !marshals(elem) {
			return &codec{enc: encBytes, dec: decBytes, least: 1, aliases: true}
		}
	}
	c := b.build(elem, path+"[]")
	if c.least == 0 && elem.Size() > 0 {
		c = padded(c)
	}
	e := elements{c: c, size: elem.Size()}
	return &codec{
		least: 1, aliases: c.aliases,
		enc: func(enc *encoder, p unsafe.Pointer) {
			s := *(*[]byte)(p) // only the header is used
			if s == nil {
				enc.b = append(enc.b, 0)
				return
			}
			enc.uvarint(uint64(len(s)) + 1)
			e.encode(enc, unsafe.Pointer(unsafe.SliceData(s)), len(s))
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			n := d.count(e.c.least)
			if n < 0 {
				return
			}
			data := newElements(t, n)
			e.decode(d, data, n)
			*(*sliceHeader)(p) = sliceHeader{data, n, n}
		},
	}
}

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// newElements is the memory of n elements of a slice's type, zeroed. The most
// frequent elements are allocated without reflection.
func newElements(t reflect.Type, n int) unsafe.Pointer {
	switch t.Elem().Kind() {
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Float64:
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, n)))
	case reflect.String:
		return unsafe.Pointer(unsafe.SliceData(make([]string, n)))
	}
	return reflect.MakeSlice(t, n, n).UnsafePointer()
}

// padded adds a byte to values that have memory but no information (a struct of
// blank fields), so that a slice's length is bounded by its encoding's.
func padded(c *codec) *codec {
	p := *c
	p.least = 1
	p.enc = func(e *encoder, v unsafe.Pointer) { e.b = append(e.b, 0); c.enc(e, v) }
	p.dec = func(d *decoder, v unsafe.Pointer) { d.take(1); c.dec(d, v) }
	return &p
}

// elements are those of a slice or an array: n values of one size in a row.
type elements struct {
	c    *codec
	size uintptr
}

func (e elements) encode(enc *encoder, p unsafe.Pointer, n int) {
	if e.size == 0 {
		return
	}
	for i := range n { // a pointer must not step behind the last one
		e.c.enc(enc, unsafe.Add(p, uintptr(i)*e.size))
	}
}

func (e elements) decode(d *decoder, p unsafe.Pointer, n int) {
	if e.size == 0 {
		return
	}
	for i := 0; i < n && !d.bad; i++ {
		e.c.dec(d, unsafe.Add(p, uintptr(i)*e.size))
	}
}

func encBytes(e *encoder, p unsafe.Pointer) {
	s := *(*[]byte)(p)
	if s == nil {
		e.b = append(e.b, 0)
		return
	}
	e.uvarint(uint64(len(s)) + 1)
	e.b = append(e.b, s...)
}

func decBytes(d *decoder, p unsafe.Pointer) {
	if n := d.count(1); n >= 0 {
		*(*[]byte)(p) = d.take(uint64(n))
	}
}

func (b *codecBuilder) array(t reflect.Type, path string) *codec {
	n := t.Len()
	c := b.build(t.Elem(), path+"["+strconv.Itoa(n)+"]")
	e := elements{c: c, size: t.Elem().Size()}
	least := n * c.least
	if e.size == 0 {
		least = 0
	}
	return &codec{
		least: least, aliases: c.aliases && n > 0, flat: c.flat || n == 0,
		enc: func(enc *encoder, p unsafe.Pointer) { e.encode(enc, p, n) },
		dec: func(d *decoder, p unsafe.Pointer) { e.decode(d, p, n) },
	}
}

// field is one of a struct.
type field struct {
	offset uintptr
	enc    func(e *encoder, p unsafe.Pointer)
	dec    func(d *decoder, p unsafe.Pointer)
}

// structure is a struct: all its fields but those named _, which equality
// ignores, too. Unexported fields travel: they are part of the value.
func (b *codecBuilder) structure(t reflect.Type, path string) *codec {
	s := &codec{flat: true}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		c := b.build(f.Type, path+"."+f.Name)
		s.least += c.least
		s.aliases = s.aliases || c.aliases
		s.flat = s.flat && c.flat
		fields = append(fields, field{f.Offset, c.enc, c.dec})
	}
	switch len(fields) {
	case 1:
		f := fields[0]
		s.enc = func(e *encoder, p unsafe.Pointer) { f.enc(e, unsafe.Add(p, f.offset)) }
		s.dec = func(d *decoder, p unsafe.Pointer) { f.dec(d, unsafe.Add(p, f.offset)) }
	case 2: // pairs, mostly
		f, g := fields[0], fields[1]
		s.enc = func(e *encoder, p unsafe.Pointer) {
			f.enc(e, unsafe.Add(p, f.offset))
			g.enc(e, unsafe.Add(p, g.offset))
		}
		s.dec = func(d *decoder, p unsafe.Pointer) {
			f.dec(d, unsafe.Add(p, f.offset))
			g.dec(d, unsafe.Add(p, g.offset))
		}
	default:
		s.enc, s.dec = inOrder(fields)
	}
	return s
}

// inOrder encodes and decodes fields one after the other.
func inOrder(fields []field) (func(*encoder, unsafe.Pointer), func(*decoder, unsafe.Pointer)) {
	enc := func(e *encoder, p unsafe.Pointer) {
		for i := range fields {
			fields[i].enc(e, unsafe.Add(p, fields[i].offset))
		}
	}
	dec := func(d *decoder, p unsafe.Pointer) {
		for i := range fields {
			fields[i].dec(d, unsafe.Add(p, fields[i].offset))
		}
	}
	return enc, dec
}

func (b *codecBuilder) pointer(t reflect.Type, path string) *codec {
	elem := t.Elem()
	c := b.build(elem, path)
	return &codec{
		least: 1, aliases: c.aliases,
		enc: func(e *encoder, p unsafe.Pointer) {
			to := *(*unsafe.Pointer)(p)
			if to == nil {
				e.b = append(e.b, 0)
				return
			}
			e.b = append(e.b, 1)
			c.enc(e, to)
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			var there bool
			decBool(d, unsafe.Pointer(&there))
			if there && !d.bad {
				to := reflect.New(elem).UnsafePointer()
				c.dec(d, to)
				*(*unsafe.Pointer)(p) = to
			}
		},
	}
}
