package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// note is a message like those of the engine.
type note struct {
	ID    uint64            `cbor:"1,keyasint"`
	Text  string            `cbor:"2,keyasint,omitempty"`
	Data  [][]byte          `cbor:"3,keyasint,omitempty"`
	Inner *note             `cbor:"4,keyasint,omitempty"`
	Small int8              `cbor:"5,keyasint,omitempty"`
	Real  float64           `cbor:"6,keyasint,omitempty"`
	Words map[string]string `cbor:"7,keyasint,omitempty"`
	Flag  bool              `cbor:"8,keyasint,omitempty"`
}

// newer is note as a later version might have it.
type newer struct {
	ID    uint64   `cbor:"1,keyasint"`
	Text  string   `cbor:"2,keyasint,omitempty"`
	Added []string `cbor:"40,keyasint"`
	Also  *newer   `cbor:"41,keyasint,omitempty"`
}

func notes() *rapid.Generator[note] {
	var depth func(n int) *rapid.Generator[note]
	depth = func(n int) *rapid.Generator[note] {
		return rapid.Custom(func(t *rapid.T) note {
			m := note{
				ID:    rapid.Uint64().Draw(t, "id"),
				Text:  string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")), // UTF-8 or not
				Data:  rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "data"),
				Small: rapid.Int8().Draw(t, "small"),
				Real:  rapid.Float64().Draw(t, "real"),
				Words: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "words"),
				Flag:  rapid.Bool().Draw(t, "flag"),
			}
			if n > 0 && rapid.Bool().Draw(t, "has inner") {
				inner := depth(n-1).Draw(t, "inner")
				m.Inner = &inner
			}
			return m
		})
	}
	return depth(3)
}

func TestMessagesComeBackEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := notes().Draw(t, "note")
		b, err := Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got note
		if err := Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if again, err := Marshal(&want); err != nil || !bytes.Equal(b, again) {
			t.Fatalf("the same message has other bytes: %x, %v, not %x", again, err, b)
		}
	})
}

func TestNothingOfTheBytesIsKept(t *testing.T) {
	b, err := Marshal(note{Text: "text", Data: [][]byte{[]byte("data")}})
	if err != nil {
		t.Fatal(err)
	}
	var got note
	if err := Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if got.Text != "text" || string(got.Data[0]) != "data" {
		t.Errorf("the message changed with the bytes it was decoded from: %+v", got)
	}
}

func TestMessagesEvolve(t *testing.T) {
	b, err := Marshal(newer{ID: 7, Text: "t", Added: []string{"x"}, Also: &newer{ID: 8}})
	if err != nil {
		t.Fatal(err)
	}
	var old note
	if err := Unmarshal(b, &old); err != nil || old.ID != 7 || old.Text != "t" {
		t.Errorf("an old reader: %+v, %v, want the fields that it knows", old, err)
	}
	if b, err = Marshal(note{ID: 7, Text: "t", Flag: true}); err != nil {
		t.Fatal(err)
	}
	var young newer
	if err := Unmarshal(b, &young); err != nil || young.ID != 7 || young.Added != nil {
		t.Errorf("a new reader: %+v, %v, want zero for what is not there", young, err)
	}
}

func TestWhatNoWriterWritesIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ hex, want string }{
		"nothing":              {"", "EOF"},
		"cut short":            {"a1", "unexpected EOF"},
		"cut in a string":      {"a102636162", "unexpected EOF"},
		"two messages":         {"a0a0", "1 bytes of extraneous data"},
		"duplicate key":        {"a201010102", "duplicate map key"},
		"duplicate map key":    {"a107a2616161626161" + "6163", "duplicate map key"},
		"indefinite map":       {"bf0101ff", "indefinite-length"},
		"indefinite text":      {"a1027f6161ff", "indefinite-length"},
		"indefinite bytes":     {"a103815f4161ff", "indefinite-length"},
		"indefinite array":     {"a1039fff", "indefinite-length"},
		"tag":                  {"a101c101", "tag"},
		"deep nesting":         {strings.Repeat("81", MaxNesting+1) + "00", "nested level"},
		"deep unknown":         {"a11863" + strings.Repeat("81", MaxNesting) + "00", "nested level"},
		"huge array":           {"a1039a00100001", "exceeded max number of elements"},
		"huge map":             {"a107ba00010001", "exceeded max number of key-value pairs"},
		"array without items":  {"a1039a00100000", "unexpected EOF"},
		"huge string":          {"a1027b7fffffffffffffff", "unexpected EOF"},
		"number for text":      {"a10201", "cannot unmarshal"},
		"negative for natural": {"a10120", "cannot unmarshal"},
		"too large a number":   {"a105190100", "cannot unmarshal"},
		"no map":               {"6161", "cannot unmarshal"},
		"break alone":          {"ff", "\"break\""},
		"reserved":             {"1c", "invalid additional information"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		var got note
		err = Unmarshal(b, &got)
		decode, ok := errors.AsType[*DecodeError](err)
		if !ok || decode.Type != "wire.note" || decode.Size != len(b) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s (%s): %+v, %v, want a DecodeError with %q", name, c.hex, got, err, c.want)
		}
	}
}

func TestWhatCannotBeEncodedIsAnError(t *testing.T) {
	if _, err := Marshal(struct{ C chan int }{}); err == nil || !strings.HasPrefix(err.Error(), "encoding a struct") {
		t.Errorf("a channel: error %v", err)
	}
	var got note
	if err := Unmarshal([]byte{0xa0}, got); err == nil {
		t.Error("decoding into a value that is no pointer: no error")
	}
	if err := Unmarshal([]byte{0xa0}, nil); err == nil {
		t.Error("decoding into nil: no error")
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, m := range []note{{}, {ID: math.MaxUint64, Text: "t", Data: [][]byte{{1}, nil}, Inner: &note{Small: -1, Real: 0.5}},
		{Words: map[string]string{"a": "b"}, Flag: true}} {
		b, err := Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m note
		if err := Unmarshal(b, &m); err != nil {
			return
		}
		// What was understood can be said again, and means the same.
		again, err := Marshal(m)
		if err != nil {
			t.Fatalf("%x decodes to %+v, which does not encode: %v", b, m, err)
		}
		var m2 note
		if err := Unmarshal(again, &m2); err != nil {
			t.Fatalf("%x decodes to %+v, whose encoding does not decode: %v", b, m, err)
		}
		if diff := cmp.Diff(m, m2, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("%x (-first +again):\n%s", b, diff)
		}
	})
}

var errBroken = errors.New("broken")

// oneByte reads one byte at a time.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(len(b), 1)]) }
