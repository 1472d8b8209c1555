package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestFramesFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(notes(), 0, 5).Draw(t, "notes")
		var stream bytes.Buffer
		w := NewWriter(&stream, upTo(1<<20))
		for _, m := range want {
			if err := w.Write(m); err != nil {
				t.Fatal(err)
			}
		}
		var from io.Reader = &stream
		if rapid.Bool().Draw(t, "byte by byte") {
			from = oneByte{from}
		}
		r := NewReader(from, upTo(1<<20))
		for i := range want {
			var got note
			if err := r.Read(&got); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			if diff := cmp.Diff(want[i], got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
				t.Fatalf("message %d (-want +got):\n%s", i, diff)
			}
		}
		if err := r.Read(&note{}); err != io.EOF {
			t.Fatalf("at the end: %v, want io.EOF", err)
		}
	})
}

func TestLargeFramesBetweenSmallOnes(t *testing.T) {
	sizes := []int{1, firstRead - 1, firstRead, firstRead + 1, 3 * keptBuffer, 5, keptBuffer, 0}
	var stream bytes.Buffer
	w := NewWriter(&stream, upTo(1<<30))
	for i, n := range sizes {
		if err := w.Write(note{ID: uint64(i), Data: [][]byte{bytes.Repeat([]byte{byte(i)}, n)}}); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&stream, upTo(1<<30))
	for i, n := range sizes {
		var got note
		if err := r.Read(&got); err != nil {
			t.Fatal(err)
		}
		if want := bytes.Repeat([]byte{byte(i)}, n); got.ID != uint64(i) || !bytes.Equal(got.Data[0], want) {
			t.Errorf("message %d with %d bytes came back with %d, or others", i, n, len(got.Data[0]))
		}
	}
	if cap(r.buf) > keptBuffer || w.buf.Cap() > keptBuffer {
		t.Errorf("a small message keeps %d and %d bytes of buffers", cap(r.buf), w.buf.Cap())
	}
}

// upTo is a limit of n bytes.
func upTo(n int64) Limit { return Limit{Bytes: n, Setting: "quern.some.setting"} }

func TestAWriterRefusesWhatIsTooLargeAndGoesOn(t *testing.T) {
	var stream bytes.Buffer
	w := NewWriter(&stream, upTo(1000))
	err := w.Write(note{Text: strings.Repeat("x", 1000)})
	large, ok := errors.AsType[*TooLargeError](err)
	if !ok || large.Size != 1007 || large.Limit.Bytes != 1000 {
		t.Fatalf("error %#v, want one of 1007 bytes over 1000", err)
	}
	if want := "a wire.note of 1007 B (1007 bytes) is over the limit of 1000 B: move less in one message, " +
		"or raise quern.some.setting"; err.Error() != want {
		t.Errorf("error\n     %v\nwant %s", err, want)
	}
	if stream.Len() > 0 {
		t.Errorf("%d bytes of it were written", stream.Len())
	}
	if err := w.Write(note{Text: strings.Repeat("x", 993)}); err != nil {
		t.Errorf("a message of just the limit: %v", err)
	}
	var got note
	if err := NewReader(&stream, upTo(1000)).Read(&got); err != nil || len(got.Text) != 993 {
		t.Errorf("reading it: %v", err)
	}
}

func TestAReaderRefusesWhatIsTooLargeBeforeItArrives(t *testing.T) {
	header := binary.BigEndian.AppendUint32(nil, 1001)
	r := NewReader(io.MultiReader(bytes.NewReader(header), broken{}), upTo(1000))
	err := r.Read(&note{})
	if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Size != 1001 || large.Limit.Bytes != 1000 {
		t.Errorf("error %v, want that 1001 bytes are too many", err)
	}
}

// broken fails when it is read.
type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, errBroken }
func (broken) Write([]byte) (int, error) { return 0, errBroken }

// A length is only a promise. It must not cost what it promises.
func TestALengthAloneTakesNoMemory(t *testing.T) {
	frame := binary.BigEndian.AppendUint32(nil, 1<<30)
	frame = append(frame, make([]byte, 1000)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := NewReader(bytes.NewReader(frame), upTo(1<<30)).Read(&note{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "the stream ends after 1000 of them") {
		t.Errorf("error %v, want that it ends early", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("a frame of 1000 bytes that promises 1 GiB took %d bytes", took)
	}
}

func TestStreamsThatEndWithinAFrame(t *testing.T) {
	var stream bytes.Buffer
	if err := NewWriter(&stream, upTo(1000)).Write(note{Text: "text"}); err != nil {
		t.Fatal(err)
	}
	frame := stream.Bytes()
	for n := 1; n < len(frame); n++ {
		err := NewReader(bytes.NewReader(frame[:n]), upTo(1000)).Read(&note{})
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "reading a wire.note") {
			t.Errorf("after %d of %d bytes: error %v, want io.ErrUnexpectedEOF", n, len(frame), err)
		}
		err = NewReader(io.MultiReader(bytes.NewReader(frame[:n]), broken{}), upTo(1000)).Read(&note{})
		if !errors.Is(err, errBroken) {
			t.Errorf("broken after %d of %d bytes: error %v, want what broke", n, len(frame), err)
		}
	}
	if err := NewReader(bytes.NewReader(make([]byte, 4)), upTo(1000)).Read(&note{}); !errors.Is(err, ErrEmptyFrame) {
		t.Errorf("an empty frame: error %v, want ErrEmptyFrame", err)
	}
	if err := NewWriter(broken{}, upTo(1000)).Write(note{}); !errors.Is(err, errBroken) {
		t.Errorf("writing: error %v, want what broke", err)
	}
}

func TestABadMessageLeavesTheStreamIntact(t *testing.T) {
	stream := bytes.NewBuffer([]byte{0, 0, 0, 2, 0xff, 0xff})
	if err := NewWriter(stream, upTo(1000)).Write(note{ID: 7}); err != nil {
		t.Fatal(err)
	}
	r := NewReader(stream, upTo(1000))
	if _, ok := errors.AsType[*DecodeError](r.Read(&note{})); !ok {
		t.Error("the bad message: no DecodeError")
	}
	var got note
	if err := r.Read(&got); err != nil || got.ID != 7 {
		t.Errorf("the next one: %+v, %v", got, err)
	}
}

func FuzzReader(f *testing.F) {
	var stream bytes.Buffer
	w := NewWriter(&stream, upTo(1000))
	for _, m := range []note{{}, {Text: "text", Data: [][]byte{{1, 2}}}} {
		if err := w.Write(m); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(stream.Bytes())
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), upTo(1<<10))
		for n := 0; ; n++ {
			var m note
			err := r.Read(&m)
			if _, ok := errors.AsType[*DecodeError](err); err != nil && !ok {
				return
			}
			if n > len(b) {
				t.Fatalf("%x has more messages than bytes", b)
			}
		}
	})
}

func BenchmarkFrames(b *testing.B) {
	var stream bytes.Buffer
	w := NewWriter(&stream, upTo(1<<20))
	r := NewReader(&stream, upTo(1<<20))
	m := note{ID: 12345, Text: "a call site.go:17", Data: [][]byte{make([]byte, 100)}, Inner: &note{ID: 7}}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(&m); err != nil {
			b.Fatal(err)
		}
		var got note
		if err := r.Read(&got); err != nil {
			b.Fatal(err)
		}
	}
}
