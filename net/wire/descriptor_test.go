package wire

import (
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/abi"
)

// Guests write descriptors with an encoder of their own, by hand, and the host
// reads them with this package. Each must come back as it was.

func maybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, "has "+label) {
		return nil
	}
	v := g.Draw(t, label)
	return &v
}

// number draws small numbers, large ones, and those around the borders of
// CBOR's encodings.
func number(limit uint64) *rapid.Generator[uint64] {
	borders := []uint64{0, 1, 23, 24, 255, 256, math.MaxUint16, math.MaxUint16 + 1, math.MaxUint32, math.MaxUint32 + 1, limit}
	return rapid.Custom(func(t *rapid.T) uint64 {
		if rapid.Bool().Draw(t, "border") {
			return min(limit, rapid.SampledFrom(borders).Draw(t, "n"))
		}
		return rapid.Uint64Max(limit).Draw(t, "n")
	})
}

func id(t *rapid.T, label string) uint32 { return uint32(number(math.MaxUint32).Draw(t, label)) }
func count(t *rapid.T, label string) int { return int(number(math.MaxInt64).Draw(t, label)) }

// text draws strings of all lengths, UTF-8 or not.
func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "long") {
			for len(s) > 0 && len(s) < 300 {
				s += s
			}
		}
		return s
	})
}

var shuffles = rapid.Custom(func(t *rapid.T) abi.ShuffleDesc {
	return abi.ShuffleDesc{
		ID:          id(t, "shuffle"),
		Partitioner: abi.PartitionerKind(id(t, "partitioner")),
		Partitions:  count(t, "partitions"),
		Bounds:      rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "bounds"),
		Sorted:      rapid.Bool().Draw(t, "sorted"),
	}
})

var deps = rapid.Custom(func(t *rapid.T) abi.DepDesc {
	return abi.DepDesc{
		Parent: id(t, "parent"), Kind: abi.DepKind(id(t, "kind")), Start: count(t, "start"),
		Shuffle: maybe(t, "shuffle", shuffles),
	}
})

var texts = rapid.Custom(func(t *rapid.T) abi.TextDesc {
	return abi.TextDesc{Paths: rapid.SliceOf(text()).Draw(t, "paths"), MinPartitions: count(t, "min")}
})

var sinks = rapid.Custom(func(t *rapid.T) abi.SinkDesc {
	return abi.SinkDesc{Path: text().Draw(t, "path"), Compression: text().Draw(t, "compression")}
})

func returns[T any](t *rapid.T, want T, encoded []byte) {
	var got T
	if err := Unmarshal(encoded, &got); err != nil {
		t.Fatalf("%+v is encoded as %x: %v", want, encoded, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("encoded as %x (-want +got):\n%s", encoded, diff)
	}
}

func TestDescriptorsOfGuestsComeBackEqual(t *testing.T) {
	t.Run("ContextDesc", rapid.MakeCheck(func(t *rapid.T) {
		d := abi.ContextDesc{
			Version: count(t, "version"), SDK: text().Draw(t, "sdk"), AppName: text().Draw(t, "name"),
			Conf: rapid.MapOf(text(), text()).Draw(t, "conf"),
		}
		returns(t, d, d.AppendCBOR(nil))
	}))
	t.Run("RDDDesc", rapid.MakeCheck(func(t *rapid.T) {
		d := abi.RDDDesc{
			ID: id(t, "id"), Name: text().Draw(t, "name"), CallSite: text().Draw(t, "call site"), Partitions: count(t, "partitions"),
			Deps: rapid.SliceOf(deps).Draw(t, "deps"), Text: maybe(t, "text", texts),
		}
		returns(t, d, d.AppendCBOR(nil))
	}))
	t.Run("JobDesc", rapid.MakeCheck(func(t *rapid.T) {
		d := abi.JobDesc{
			RDD: id(t, "rdd"), Action: id(t, "action"), Name: text().Draw(t, "name"), CallSite: text().Draw(t, "call site"),
			Partitions: rapid.SliceOf(rapid.IntMin(0)).Draw(t, "partitions"), Sink: maybe(t, "sink", sinks),
			Dropped: rapid.SliceOf(rapid.Uint32()).Draw(t, "dropped"),
		}
		returns(t, d, d.AppendCBOR(nil))
	}))
}

// The encoder must know every field, those to come included: a field that it
// forgets is zero here and not there.
func TestDescriptorsHaveNoFieldThatGuestsForget(t *testing.T) {
	shuffle := abi.ShuffleDesc{ID: 1, Partitioner: 2, Partitions: 3, Bounds: [][]byte{{4}}, Sorted: true}
	for _, desc := range []interface{ AppendCBOR([]byte) []byte }{
		&abi.ContextDesc{Version: 1, SDK: "s", AppName: "a", Conf: map[string]string{"k": "v"}},
		&abi.RDDDesc{ID: 1, Name: "n", CallSite: "c", Partitions: 2,
			Deps: []abi.DepDesc{{Parent: 1, Kind: 2, Start: 3, Shuffle: &shuffle}},
			Text: &abi.TextDesc{Paths: []string{"p"}, MinPartitions: 1}},
		&abi.JobDesc{RDD: 1, Action: 2, Name: "n", CallSite: "c", Partitions: []int{1},
			Sink: &abi.SinkDesc{Path: "p", Compression: "c"}, Dropped: []uint32{1}},
	} {
		encoded := desc.AppendCBOR([]byte("before"))
		want, err := Marshal(desc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("before"+string(want), string(encoded)); diff != "" {
			t.Errorf("%T with every field set is encoded in another way (-library +guest):\n%s", desc, diff)
		}
		if empty := emptyFields(desc); len(empty) > 0 {
			t.Errorf("this test must set %q of %T", empty, desc)
		}
	}
}

// emptyFields names the exported fields in v, and in what it holds, that are
// zero.
func emptyFields(v any) (empty []string) {
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch {
		case v.IsZero():
			empty = append(empty, path)
		case v.Kind() == reflect.Pointer:
			visit(path, v.Elem())
		case v.Kind() == reflect.Slice:
			visit(path+"[0]", v.Index(0))
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	visit("", reflect.ValueOf(v))
	return empty
}
