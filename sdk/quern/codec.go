package quern

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// How elements travel. A type's codec is built once, by reflection, as a tree of
// closures over field offsets; encoding and decoding then run without
// reflection, except for maps.
//
// The encoding, which only ever passes between copies of one module:
//
//	bool, int8, uint8      1 byte
//	other integers         varint; zigzag if signed
//	floats, complex        4, 8 or 2*8 bytes, little-endian
//	string, []byte         uvarint length, bytes
//	slice                  uvarint length+1, elements; 0 for nil
//	map                    the same, entries in the order of their encoded keys
//	array, struct          elements, fields (also unexported ones)
//	pointer                0 for nil, else 1 and what it points to
//	BinaryMarshaler        uvarint length, bytes
//
// A decoder never panics, whatever the bytes, and its memory is bounded by their
// number.

// encoder appends values to b.
type encoder struct {
	b     []byte
	depth int // of types that contain themselves
}

// decoder reads values from b. After damage it stays at the end.
type decoder struct {
	b     []byte
	pos   int
	bad   bool
	depth int
}

func (d *decoder) damaged() { d.bad, d.pos = true, len(d.b) }

// codec is how a type travels. p points to a value of the type.
type codec struct {
	enc func(e *encoder, p unsafe.Pointer)
	dec func(d *decoder, p unsafe.Pointer)
	// least is the smallest number of bytes of an encoded value. It is 0 for types
	// without information, such as struct{}.
	least int
	// aliases says that decoded values point into the decoder's bytes.
	aliases bool
	// flat says that a plain assignment copies a value: no pointers in it.
	flat bool
}

// maxDepth bounds how deep a value may nest through its own type (lists, trees).
// Deeper is a cycle, or a list that should be a slice.
const maxDepth = 10_000

// typeError says why a type cannot travel.
type typeError struct {
	root   reflect.Type
	path   string // "" for the root itself, else ".Field[]"
	cannot string // "travel" or "be a key"
	what   string // "an interface, ..."
}

func (e *typeError) Error() string {
	if e.path == "" {
		return fmt.Sprintf("%v cannot %s: it is %s", e.root, e.cannot, e.what)
	}
	return fmt.Sprintf("%v cannot %s: %v%s is %s", e.root, e.cannot, e.root, e.path, e.what)
}

// codecs remembers what was built; the registry of types, in effect.
var codecs sync.Map // reflect.Type -> *codec or *typeError

// codecOf returns the codec of T or says why it has none.
func codecOf[T any]() (*codec, error) { return codecFor(reflect.TypeFor[T]()) }

func codecFor(t reflect.Type) (*codec, error) {
	known, ok := codecs.Load(t)
	if !ok {
		b := codecBuilder{root: t, open: map[reflect.Type]*codec{}}
		if c := b.build(t, ""); b.err != nil {
			known, _ = codecs.LoadOrStore(t, b.err)
		} else {
			known, _ = codecs.LoadOrStore(t, c)
		}
	}
	if err, bad := known.(*typeError); bad {
		return nil, err
	}
	return known.(*codec), nil
}

// codecBuilder builds one type's tree.
type codecBuilder struct {
	root reflect.Type
	open map[reflect.Type]*codec // being built: found again inside itself
	err  *typeError
}

// refuse notes the first reason against a type.
func (b *codecBuilder) refuse(path, what string) *codec {
	if b.err == nil {
		b.err = &typeError{b.root, path, "travel", what}
	}
	return &codec{}
}

func (b *codecBuilder) build(t reflect.Type, path string) *codec {
	if c := b.open[t]; c != nil {
		return recursive(c)
	}
	if marshals(t) {
		return binaryCodec(t)
	}
	if c := scalarCodec(t); c != nil {
		return c
	}
	c := &codec{}
	b.open[t] = c
	defer delete(b.open, t)
	switch t.Kind() {
	case reflect.Slice:
		*c = *b.slice(t, path)
	case reflect.Array:
		*c = *b.array(t, path)
	case reflect.Struct:
		*c = *b.structure(t, path)
	case reflect.Map:
		*c = *b.mapping(t, path)
	case reflect.Pointer:
		*c = *b.pointer(t, path)
	case reflect.Interface:
		return b.refuse(path, "an interface, whose dynamic type the other side does not know; use a concrete type")
	case reflect.Func:
		return b.refuse(path, "a function; let a closure capture it instead")
	case reflect.Chan:
		return b.refuse(path, "a channel")
	default:
		return b.refuse(path, "an "+t.Kind().String())
	}
	return c
}

// recursive is a reference to a codec that is still being built. It counts the
// depth. Only pointers, slices and maps can close such a loop, hence the other
// fields.
func recursive(c *codec) *codec {
	return &codec{
		least: 1, aliases: true,
		enc: func(e *encoder, p unsafe.Pointer) {
			if e.depth++; e.depth > maxDepth {
				fail(abi.ErrUser, "a value cannot travel: it nests through its own type more than "+
					strconv.Itoa(maxDepth)+" deep; it is a cycle, or a list that should be a slice")
			}
			c.enc(e, p)
			e.depth--
		},
		dec: func(d *decoder, p unsafe.Pointer) {
			if d.depth++; d.depth > maxDepth {
				d.damaged()
				return
			}
			c.dec(d, p)
			d.depth--
		},
	}
}

// uvarint is binary.Uvarint: the value, and the bytes it takes or what is <= 0.
func uvarint(b []byte) (uint64, int) { return binary.Uvarint(b) }

func (e *encoder) uvarint(v uint64) {
	if v < 0x80 {
		e.b = append(e.b, byte(v))
		return
	}
	e.b = binary.AppendUvarint(e.b, v)
}

func (d *decoder) uvarint() uint64 {
	if d.pos < len(d.b) {
		if b := d.b[d.pos]; b < 0x80 {
			d.pos++
			return uint64(b)
		}
	}
	v, n := binary.Uvarint(d.b[d.pos:])
	if n <= 0 {
		d.damaged()
		return 0
	}
	d.pos += n
	return v
}

// take returns the next n bytes, nil if there are fewer.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)-d.pos) {
		d.damaged()
		return nil
	}
	start := d.pos
	d.pos += int(n)
	return d.b[start:d.pos:d.pos]
}

// count reads the number of elements of a collection, each at least `least`
// bytes long, and refuses numbers that the remaining bytes cannot hold. It
// answers -1 for a nil collection.
func (d *decoder) count(least int) int {
	n := d.uvarint()
	if n == 0 {
		return -1
	}
	n--
	if limit := uint64(len(d.b) - d.pos); least > 0 && n > limit/uint64(least) || n > math.MaxInt32 {
		d.damaged()
		return -1
	}
	return int(n)
}

// cloner returns a function that makes independent copies of v: aggregations
// start from one for each key or partition, as their functions may change it in
// place.
func cloner[T any](v T) (func() T, error) {
	c, err := codecOf[T]()
	if err != nil {
		return nil, err
	}
	if c.flat {
		return func() T { return v }, nil
	}
	var bytes []byte
	return func() T {
		if bytes == nil { // at first use: the value is as it stands at the action
			var e encoder
			c.enc(&e, unsafe.Pointer(&v))
			bytes = append(e.b, 0)
		}
		fresh := new(T)
		d := decoder{b: bytes[: len(bytes)-1 : len(bytes)-1]}
		c.dec(&d, unsafe.Pointer(fresh))
		return *fresh
	}, nil
}
