// Package wire is how messages become bytes: CBOR, in frames with a length.
//
// A frame is
//
//	length   4 bytes, big-endian, of what follows; at least 1
//	message  one CBOR item of definite lengths (RFC 8949)
//
// A message is a Go struct whose fields carry integer keys:
//
//	type Hello struct {
//		Version int    `cbor:"1,keyasint"`
//		Name    string `cbor:"2,keyasint,omitempty"`
//	}
//
// Structs evolve by new keys: an old reader skips a key that it does not know,
// a new one sees the zero value of a key that is not there. A key is never used
// again with another meaning.
//
// What is read was written by somebody else. So decoding refuses what a
// [Writer] never writes: duplicate keys, indefinite lengths, tags, deep nesting,
// huge containers, bytes after the item. The size of a frame is checked before
// memory is taken for it, and memory grows with what has really arrived. Text
// need not be UTF-8: paths and the texts of errors are bytes on many systems,
// and a failure must not get lost because of how its message is spelt.
//
// Records never pass through this package, only what describes them.
package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

const (
	// MaxNesting is how deep arrays and maps may nest.
	MaxNesting = 16
	// MaxElements is how many elements one array may have.
	MaxElements = 1 << 20
	// MaxPairs is how many pairs one map may have.
	MaxPairs = 1 << 16
)

// modes are the library's options, put together once: it makes them costly to
// create and free to use.
var modes = sync.OnceValue(func() (m struct {
	enc cbor.UserBufferEncMode
	dec cbor.DecMode
}) {
	var err error
	m.enc, err = cbor.EncOptions{
		Sort:        cbor.SortCoreDeterministic, // the same message, the same bytes
		IndefLength: cbor.IndefLengthForbidden,
		TagsMd:      cbor.TagsForbidden,
	}.UserBufferEncMode()
	if err != nil {
		panic(fmt.Sprintf("wire: encoding options: %v", err))
	}
	m.dec, err = cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  MaxNesting,
		MaxArrayElements: MaxElements,
		MaxMapPairs:      MaxPairs,
		UTF8:             cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(fmt.Sprintf("wire: decoding options: %v", err))
	}
	return m
})

// Marshal returns a message's encoding.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := encode(v, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unmarshal decodes all of data, which is one message, into the struct that v
// points to, which should be zero: keys that are not there leave their fields
// as they are. It keeps nothing of data. An error is a [DecodeError].
func Unmarshal(data []byte, v any) error {
	if err := modes().dec.Unmarshal(data, v); err != nil {
		return &DecodeError{Type: typeName(v), Size: len(data), Cause: err}
	}
	return nil
}

func encode(v any, b *bytes.Buffer) error {
	if err := modes().enc.MarshalToBuffer(v, b); err != nil {
		return fmt.Errorf("encoding a %s: %w", typeName(v), err)
	}
	return nil
}

// typeName names the type of a message, as in "msg.Launch".
func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return "nil"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.String()
}

// DecodeError is bytes that are not the message that they should be.
type DecodeError struct {
	Type  string // of the message
	Size  int    // of the bytes
	Cause error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decoding a %s from %d bytes: %v", e.Type, e.Size, e.Cause)
}

func (e *DecodeError) Unwrap() error { return e.Cause }
