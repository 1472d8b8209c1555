package quern

import (
	"bytes"
	"encoding"
	"reflect"
	"slices"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// mapping is a map. Entries go in the order of their encoded keys, so that equal
// maps have equal bytes, whatever the order of iteration.
func (b *codecBuilder) mapping(t reflect.Type, path string) *codec {
	key := b.build(t.Key(), path+"[key]")
	elem := b.build(t.Elem(), path+"[]")
	return &codec{
		least: 1, aliases: key.aliases || elem.aliases,
		enc: func(e *encoder, p unsafe.Pointer) {
			m := reflect.NewAt(t, p).Elem()
			if m.IsNil() {
				e.b = append(e.b, 0)
				return
			}
			e.uvarint(uint64(m.Len()) + 1)
			type entry struct{ start, value, end int }
			entries := make([]entry, 0, m.Len())
			// Into a buffer of their own, then in order into e.
			part := encoder{depth: e.depth}
			k, v := reflect.New(t.Key()), reflect.New(t.Elem())
			for it := m.MapRange(); it.Next(); {
				start := len(part.b)
				k.Elem().Set(it.Key())
				key.enc(&part, k.UnsafePointer())
				value := len(part.b)
				v.Elem().Set(it.Value())
				elem.enc(&part, v.UnsafePointer())
				entries = append(entries, entry{start, value, len(part.b)})
			}
			slices.SortFunc(entries, func(x, y entry) int {
				if c := bytes.Compare(part.b[x.start:x.value], part.b[y.start:y.value]); c != 0 {
					return c
				}
				// NaN keys may have equal bytes.
				return bytes.Compare(part.b[x.value:x.end], part.b[y.value:y.end])
			})
			for _, x := range entries {
				e.b = append(e.b, part.b[x.start:x.end]...)
			}
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			n := d.count(key.least + elem.least)
			if n < 0 {
				return
			}
			m := reflect.MakeMapWithSize(t, min(n, len(d.b)-d.pos))
			for i := 0; i < n && !d.bad; i++ {
				before := d.pos
				k, v := reflect.New(t.Key()), reflect.New(t.Elem())
				key.dec(d, k.UnsafePointer())
				elem.dec(d, v.UnsafePointer())
				if d.pos == before && i > 0 {
					d.damaged() // entries without bytes are all the same one
				}
				if !d.bad {
					m.SetMapIndex(k.Elem(), v.Elem())
				}
			}
			reflect.NewAt(t, p).Elem().Set(m)
		},
	}
}

var (
	marshalerType   = reflect.TypeFor[encoding.BinaryMarshaler]()
	unmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// marshals says whether a type travels by its own MarshalBinary and
// UnmarshalBinary, as time.Time does. Methods that a struct has from a type
// embedded in it do not count: they would lose the other fields.
func marshals(t reflect.Type) bool {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false
	}
	p := reflect.PointerTo(t)
	if !p.Implements(marshalerType) || !p.Implements(unmarshalerType) {
		return false
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.Anonymous {
				continue
			}
			ft := f.Type
			if ft.Kind() != reflect.Pointer {
				ft = reflect.PointerTo(ft)
			}
			if ft.Implements(marshalerType) || f.Type.Implements(marshalerType) {
				return false
			}
		}
	}
	return true
}

func binaryCodec(t reflect.Type) *codec {
	return &codec{
		least: 1,
		enc: func(e *encoder, p unsafe.Pointer) {
			b := marshal(t, p)
			e.uvarint(uint64(len(b)))
			e.b = append(e.b, b...)
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			// The method may keep its argument.
			if b := bytes.Clone(d.take(d.uvarint())); !d.bad && !unmarshal(t, p, b) {
				d.damaged()
			}
		},
	}
}

func marshal(t reflect.Type, p unsafe.Pointer) []byte {
	b, err := reflect.NewAt(t, p).Interface().(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		fail(abi.ErrUser, "a "+t.String()+" cannot travel: its MarshalBinary says: "+err.Error())
	}
	return b
}

// unmarshal answers false when the type's own method refuses the bytes, or
// panics on them.
func unmarshal(t reflect.Type, p unsafe.Pointer, b []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return reflect.NewAt(t, p).Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b) == nil
}
