package quern

import (
	"bytes"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type (
	named              string
	generics[A, B any] struct {
		A A
		b B
	}
	tree struct {
		Name string
		Kids []*tree
	}
	list struct {
		Value int
		Next  *list
	}
	inner      struct{ N int16 }
	everything struct {
		Bool       bool
		Ints       [2]int
		I8         int8
		I16        int16
		I32        int32
		I64        int64
		U          uint
		U8         uint8
		U16        uint16
		U32        uint32
		U64        uint64
		Ptr        uintptr
		F32        float32
		F64        float64
		C64        complex64
		C128       complex128
		S          string
		Named      named
		Bytes      []byte
		Strings    []string
		Floats     []float64
		Map        map[string][]int
		Pointer    *inner
		hidden     map[int]bool
		Anonymous  struct{ X, Y int }
		inner      // embedded
		_          int
		Generic    generics[string, []generics[int, bool]]
		Empty      struct{}
		Empties    []struct{}
		When       time.Time
		Pair       Pair[string, *Pair[int, int]]
		Signed     []int8
		Tree       tree
		Blank      []struct{ _ int }
		NoElements [0]string
	}
)

// unexported compares all fields.
var unexported = cmp.Exporter(func(t reflect.Type) bool { return t != reflect.TypeFor[time.Time]() })

func roundTrip[T any](t rapid.TB, v T) (T, []byte) {
	t.Helper()
	c, err := codecOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	var e encoder
	c.enc(&e, unsafe.Pointer(&v))
	if len(e.b) < c.least {
		t.Errorf("%T: %d bytes, less than the least %d", v, len(e.b), c.least)
	}
	out := new(T)
	d := decoder{b: e.b}
	c.dec(&d, unsafe.Pointer(out))
	if d.bad || d.pos != len(e.b) {
		t.Fatalf("%T: decoding stopped at %d of %d bytes (damaged: %v)", v, d.pos, len(e.b), d.bad)
	}
	return *out, e.b
}

func TestEveryKindOfTypeTravels(t *testing.T) {
	full := everything{
		Bool: true, Ints: [2]int{math.MinInt, math.MaxInt}, I8: -128, I16: -32768, I32: math.MinInt32, I64: math.MinInt64,
		U: math.MaxUint, U8: 255, U16: 65535, U32: math.MaxUint32, U64: math.MaxUint64, Ptr: 7,
		F32: -1.5, F64: math.Inf(-1), C64: 1 + 2i, C128: 3 - 4i, S: "a\x00é", Named: "n", Bytes: []byte{0, 255},
		Strings: []string{"", "x"}, Floats: []float64{}, Map: map[string][]int{"a": nil, "b": {}, "c": {1, -1}},
		Pointer: &inner{3}, hidden: map[int]bool{-1: true}, inner: inner{9},
		Generic: generics[string, []generics[int, bool]]{"g", []generics[int, bool]{{1, true}}},
		Empties: make([]struct{}, 5), When: time.Date(2024, 2, 29, 1, 2, 3, 4, time.FixedZone("", 3600)),
		Pair: Pair[string, *Pair[int, int]]{"k", &Pair[int, int]{1, 2}}, Signed: []int8{-1, 1},
		Tree: tree{"root", []*tree{{"leaf", nil}, nil, {"", []*tree{}}}}, Blank: make([]struct{ _ int }, 3),
	}
	full.Anonymous.X = 5
	for _, v := range []everything{full, {}} {
		got, _ := roundTrip(t, v)
		if diff := cmp.Diff(v, got, unexported); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	}
	n := big.NewInt(0).Lsh(big.NewInt(-12345), 300)
	if got, _ := roundTrip(t, n); got.Cmp(n) != 0 {
		t.Errorf("a big integer arrives as %v", got)
	}
	u, _ := url.Parse("https://user@example.org/a?b=c#d")
	if got, _ := roundTrip(t, u); got.String() != u.String() {
		t.Errorf("a URL arrives as %v", got)
	}
	if got, _ := roundTrip(t, netip.MustParseAddr("fe80::1%eth0")); got.String() != "fe80::1%eth0" {
		t.Errorf("an address arrives as %v", got)
	}
	stamped := struct {
		time.Time
		N int
	}{time.Unix(1, 2).UTC(), 3}
	if got, _ := roundTrip(t, stamped); got.N != 3 || !got.Time.Equal(stamped.Time) {
		t.Errorf("a struct with an embedded time arrives as %v", got)
	}
	if got, _ := roundTrip(t, math.Float64frombits(0x7ff8_dead_beef_0001)); math.Float64bits(got) != 0x7ff8_dead_beef_0001 {
		t.Errorf("a NaN's bits arrive as %x", math.Float64bits(got))
	}
}

func TestRandomValuesArriveAsTheyWereSent(t *testing.T) {
	t.Run("string", property(rapid.String()))
	t.Run("bytes", property(rapid.SliceOf(rapid.Byte())))
	t.Run("int", property(rapid.Int()))
	t.Run("uint64", property(rapid.Uint64()))
	t.Run("int8", property(rapid.Int8()))
	t.Run("float64", property(rapid.Float64()))
	t.Run("map", property(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Int32()))))
	t.Run("struct", property(rapid.Custom(func(t *rapid.T) generics[[]string, Pair[int16, map[bool]float32]] {
		return generics[[]string, Pair[int16, map[bool]float32]]{
			rapid.SliceOf(rapid.String()).Draw(t, "a"),
			Pair[int16, map[bool]float32]{rapid.Int16().Draw(t, "k"), rapid.MapOf(rapid.Bool(), rapid.Float32()).Draw(t, "v")},
		}
	})))
	t.Run("pointer", property(rapid.Ptr(rapid.Ptr(rapid.Int(), true), true)))
}

func property[T any](g *rapid.Generator[T]) func(*testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			v := g.Draw(t, "value")
			got, _ := roundTrip(t, v)
			if diff := cmp.Diff(v, got, unexported); diff != "" {
				t.Fatalf("(-sent +received):\n%s", diff)
			}
		})
	}
}

func TestEqualMapsHaveEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.Int(), rapid.String()).Draw(t, "m")
		again := map[int]string{}
		for k, v := range m {
			again[k] = v
		}
		_, a := roundTrip(t, m)
		_, b := roundTrip(t, again)
		if !bytes.Equal(a, b) {
			t.Fatalf("%x\n%x", a, b)
		}
	})
}

func TestTypesThatCannotTravelAreNamedWithTheField(t *testing.T) {
	refused := func(_ *codec, err error) string {
		if err == nil {
			return "no error"
		}
		return err.Error()
	}
	for _, c := range []struct{ got, want string }{
		{refused(codecOf[any]()), "interface {} cannot travel: it is an interface"},
		{refused(codecOf[func()]()), "func() cannot travel: it is a function"},
		{refused(codecOf[[]chan int]()), "[]chan int cannot travel: []chan int[] is a channel"},
		{refused(codecOf[unsafe.Pointer]()), "unsafe.Pointer cannot travel: it is an unsafe.Pointer"},
		{refused(codecOf[Pair[string, generics[error, int]]]()), ".Value.A is an interface"},
		{refused(codecOf[map[string]struct{ f [3]func() }]()), "[].f[3] is a function"},
		{refused(codecOf[map[any]int]()), "[key] is an interface"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%q does not contain %q", c.got, c.want)
		}
	}
}

func TestCyclesFail(t *testing.T) {
	l := &list{Value: 1}
	l.Next = l
	defer func() {
		f, ok := recover().(*taskFailure)
		if !ok || !strings.Contains(f.text, "cycle") {
			t.Errorf("a list that ends in itself: %v", f)
		}
	}()
	roundTrip(t, l)
}

func TestLongListsTravel(t *testing.T) {
	var l *list
	for i := range maxDepth - 2 {
		l = &list{i, l}
	}
	got, _ := roundTrip(t, l)
	n := 0
	for ; got != nil; got = got.Next {
		n++
	}
	if n != maxDepth-2 {
		t.Errorf("%d of %d elements arrived", n, maxDepth-2)
	}
}

func TestClonerMakesIndependentCopies(t *testing.T) {
	fresh, err := cloner(map[string][]int{"a": {1}})
	if err != nil {
		t.Fatal(err)
	}
	one, other := fresh(), fresh()
	one["a"][0] = 2
	one["b"] = nil
	if diff := cmp.Diff(map[string][]int{"a": {1}}, other); diff != "" {
		t.Errorf("a change of one copy is seen in another:\n%s", diff)
	}
}

// FuzzDecode feeds decoders with anything: they must not panic, and what they
// accept must survive another round.
func FuzzDecode(f *testing.F) {
	_, seed := roundTrip(f, everything{S: "x", Map: map[string][]int{"a": {1}}, Tree: tree{"r", []*tree{nil}}})
	f.Add(seed)
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add([]byte{1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzOne[everything](t, b)
		fuzzOne[tree](t, b)
		fuzzOne[list](t, b)
		fuzzOne[[]struct{ _ int }](t, b)
		fuzzOne[[]struct{}](t, b)
		fuzzOne[map[struct{}]string](t, b)
		fuzzOne[map[float64][]tree](t, b)
		fuzzOne[*url.URL](t, b)
		fuzzOne[[]netip.Prefix](t, b)
	})
}

func fuzzOne[T any](t *testing.T, b []byte) {
	c, err := codecOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	v := new(T)
	d := decoder{b: b}
	c.dec(&d, unsafe.Pointer(v))
	if d.bad {
		return
	}
	var once, twice encoder
	c.enc(&once, unsafe.Pointer(v))
	again := new(T)
	d = decoder{b: once.b}
	c.dec(&d, unsafe.Pointer(again))
	if d.bad || d.pos != len(once.b) {
		t.Fatalf("%T: what it encoded itself is damaged: %x", *v, once.b)
	}
	c.enc(&twice, unsafe.Pointer(again))
	if !bytes.Equal(once.b, twice.b) {
		t.Fatalf("%T: %x becomes %x", *v, once.b, twice.b)
	}
}
