package quern

import (
	"bytes"
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func keyOf[T any](t rapid.TB, v T, descending bool) []byte {
	t.Helper()
	c, err := keyCodecOf[T](descending)
	if err != nil {
		t.Fatal(err)
	}
	var e encoder
	c.enc(&e, unsafe.Pointer(&v))
	out := new(T)
	if !c.decode(e.b, unsafe.Pointer(out)) {
		t.Fatalf("%T: a key's own bytes %x do not decode", v, e.b)
	}
	var again encoder
	c.enc(&again, unsafe.Pointer(out))
	if !bytes.Equal(e.b, again.b) {
		t.Fatalf("%T: key %x decodes to %x", v, e.b, again.b)
	}
	return e.b
}

// ordered checks that two values compare as their keys do, both ways.
func ordered[T any](g *rapid.Generator[T], compare func(a, b T) int) func(*testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, b := g.Draw(t, "a"), g.Draw(t, "b")
			want := compare(a, b)
			if got := bytes.Compare(keyOf(t, a, false), keyOf(t, b, false)); got != want {
				t.Fatalf("%v and %v compare as %d, their keys as %d", a, b, want, got)
			}
			if got := bytes.Compare(keyOf(t, a, true), keyOf(t, b, true)); got != -want {
				t.Fatalf("%v and %v compare as %d, their descending keys as %d", a, b, want, got)
			}
		})
	}
}

// bytesWithZeros makes short strings of the bytes that escaping is about.
func bytesWithZeros() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff}), 0, 4).Draw(t, "bytes"))
	})
}

// floatsWithEdges has NaN as the largest, unlike cmp.Compare.
func compareFloats[F float32 | float64](a, b F) int {
	if an, bn := a != a, b != b; an || bn {
		return cmp.Compare(boolInt(an), boolInt(bn))
	}
	return cmp.Compare(a, b)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestKeysAreInTheOrderOfTheirBytes(t *testing.T) {
	edges := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.SmallestNonzeroFloat64, -1, 1,
		math.Float64frombits(0xfff8_0000_0000_0001)}
	f64 := rapid.OneOf(rapid.Float64(), rapid.SampledFrom(edges))
	f32 := rapid.Map(f64, func(f float64) float32 { return float32(f) })
	small := rapid.IntRange(-2, 2)
	t.Run("bool", ordered(rapid.Bool(), func(a, b bool) int { return cmp.Compare(boolInt(a), boolInt(b)) }))
	t.Run("int", ordered(rapid.Int(), cmp.Compare))
	t.Run("int8", ordered(rapid.Int8(), cmp.Compare))
	t.Run("int16", ordered(rapid.Int16(), cmp.Compare))
	t.Run("int32", ordered(rapid.Int32(), cmp.Compare))
	t.Run("int64", ordered(rapid.Int64(), cmp.Compare))
	t.Run("uint", ordered(rapid.Uint(), cmp.Compare))
	t.Run("uint8", ordered(rapid.Uint8(), cmp.Compare))
	t.Run("uint16", ordered(rapid.Uint16(), cmp.Compare))
	t.Run("uint32", ordered(rapid.Uint32(), cmp.Compare))
	t.Run("uint64", ordered(rapid.Uint64(), cmp.Compare))
	t.Run("uintptr", ordered(rapid.Uintptr(), cmp.Compare))
	t.Run("float64", ordered(f64, compareFloats))
	t.Run("float32", ordered(f32, compareFloats))
	t.Run("string", ordered(bytesWithZeros(), cmp.Compare))
	t.Run("bytes", ordered(rapid.Map(bytesWithZeros(), func(s string) []byte { return []byte(s) }), bytes.Compare))
	t.Run("strings", ordered(rapid.SliceOfN(bytesWithZeros(), 0, 3), slices.Compare))
	t.Run("array", ordered(rapid.Custom(func(t *rapid.T) [2]string {
		return [2]string{bytesWithZeros().Draw(t, "0"), bytesWithZeros().Draw(t, "1")}
	}), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }))
	type key = struct {
		Name   string
		_      int
		Number int
		sub    Pair[float64, []int]
	}
	t.Run("struct", ordered(rapid.Custom(func(t *rapid.T) key {
		return key{
			Name: bytesWithZeros().Draw(t, "name"), Number: small.Draw(t, "number"),
			sub: Pair[float64, []int]{rapid.SampledFrom(edges).Draw(t, "f"), rapid.SliceOfN(small, 0, 2).Draw(t, "s")},
		}
	}), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number),
			compareFloats(a.sub.Key, b.sub.Key), slices.Compare(a.sub.Value, b.sub.Value))
	}))
	t.Run("time", ordered(rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 3).Draw(t, "ns")).UTC()
	}), time.Time.Compare))
	t.Run("address", ordered(rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip")))
	}), netip.Addr.Compare))
}

func TestKeysComeBack(t *testing.T) {
	type key struct {
		S string
		A [2]int8
		B []byte
		C complex128
		T time.Time
	}
	for _, want := range []key{
		{"a\x00b", [2]int8{-1, 1}, []byte{0, 0}, -1 + 2i, time.Date(1969, 1, 2, 3, 4, 5, 6, time.FixedZone("", -1800))},
		{B: []byte{}, T: time.Time{}},
	} {
		for _, descending := range []bool{false, true} {
			c, err := keyCodecOf[key](descending)
			if err != nil {
				t.Fatal(err)
			}
			var e encoder
			c.enc(&e, unsafe.Pointer(&want))
			var got key
			if !c.decode(e.b, unsafe.Pointer(&got)) {
				t.Fatalf("%x does not decode", e.b)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("descending %v (-sent +received):\n%s", descending, diff)
			}
		}
	}
}

func TestTypesThatCannotBeKeys(t *testing.T) {
	refused := func(_ *keyCodec, err error) string {
		if err == nil {
			return "no error"
		}
		return err.Error()
	}
	type endless []endless
	for _, c := range []struct{ got, want string }{
		{refused(keyCodecOf[*int](false)), "*int cannot be a key: it is a pointer"},
		{refused(keyCodecOf[map[string]int](false)), "cannot be a key: it is a map, which has no order"},
		{refused(keyCodecOf[struct{ A any }](true)), ".A is an interface"},
		{refused(keyCodecOf[[]chan int](false)), "[] is a chan"},
		{refused(keyCodecOf[endless](false)), "contains itself"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%q does not contain %q", c.got, c.want)
		}
	}
}

// FuzzKey feeds key decoders with anything. What they accept must have one
// encoding again.
func FuzzKey(f *testing.F) {
	type key struct {
		S []string
		F float64
		B [2]bool
		T time.Time
		I int32
	}
	f.Add(keyOf(f, key{S: []string{"a\x00"}, F: -1}, false), false)
	f.Add(keyOf(f, key{}, true), true)
	f.Add([]byte{0, 0xff, 0, 1}, false)
	f.Fuzz(func(t *testing.T, b []byte, descending bool) {
		fuzzKey[key](t, b, descending)
		fuzzKey[string](t, b, descending)
		fuzzKey[[][]byte](t, b, descending)
		fuzzKey[netip.Prefix](t, b, descending)
	})
}

func fuzzKey[T any](t *testing.T, b []byte, descending bool) {
	c, err := keyCodecOf[T](descending)
	if err != nil {
		t.Fatal(err)
	}
	v := new(T)
	if !c.decode(b, unsafe.Pointer(v)) {
		return
	}
	keyOf(t, *v, descending)
}
