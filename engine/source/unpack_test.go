package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/quern-project/quern/engine/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// packings are the ways to compress a text.
var packings = map[string]func([]byte) []byte{".gz": gzipped1, ".zst": zstd1}

func TestCompressedFiles(t *testing.T) {
	w := newWorld(t)
	text := "one\r\ntwo\n" + string(lines60(1<<20)) + "grüße\nlast, without an end\r"
	half := len(text) / 2
	for suffix, pack := range packings {
		for name, content := range map[string][]byte{
			"whole":   pack([]byte(text)),
			"members": slices.Concat(pack([]byte(text[:half])), pack(nil), pack([]byte(text[half:]))),
		} {
			path := w.write(name+suffix, content)
			pieces := []msg.Piece{{Path: path, Length: int64(len(content))}, {Path: path, Length: int64(len(content))}}
			got, err := w.readAll(pieces, 64<<10)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if want := slices.Concat(naive(text), naive(text)); !slices.Equal(want, got) {
				t.Errorf("%s read twice: wrong lines (-want +got):\n%.1000s", path, cmp.Diff(want, got))
			}
		}
		path := w.write("nothing"+suffix, pack(nil))
		if got, err := w.readAll([]msg.Piece{{Path: path, Length: 1}}, 100); err != nil || len(got) != 0 {
			t.Errorf("%s: %q, %v, want no lines", path, got, err)
		}
	}
}

func TestBytesOfCompressedFilesAreCountedAsTheyAreOnDisk(t *testing.T) {
	w := newWorld(t)
	for suffix, pack := range packings {
		content := pack([]byte(strings.Repeat("the same line again\n", 20_000)))
		r := Open(context.Background(), w.grants, &budget{}, []msg.Piece{
			{Path: w.write("text"+suffix, content), Length: int64(len(content))}})
		lines, err := drain(r, 64<<10)
		r.Close()
		if err != nil || len(lines) != 20_000 || r.Bytes() != int64(len(content)) {
			t.Errorf("%s: %d lines, %d bytes, %v, want 20000 lines and %d bytes", suffix, len(lines), r.Bytes(), err, len(content))
		}
	}
}

// A file that ends at any byte of it is truncated, except between two members.
func TestTruncatedFilesNameFileAndOffset(t *testing.T) {
	w := newWorld(t)
	for suffix, pack := range packings {
		first := pack([]byte("one\ntwo\n"))
		content := slices.Concat(first, pack([]byte("three\nfour\n")))
		for n := 1; n < len(content); n++ {
			path := w.write("cut"+suffix, content[:n])
			lines, err := w.readAll([]msg.Piece{{Path: path, Length: int64(n)}}, 100)
			if n == len(first) {
				if err != nil || len(lines) != 2 {
					t.Errorf("cut%s between its members: %q, %v, want two lines", suffix, lines, err)
				}
				continue
			}
			data, ok := errors.AsType[*DataError](err)
			if !ok || data.Path != path || data.Offset != int64(n) || !errors.Is(err, io.ErrUnexpectedEOF) ||
				!strings.Contains(err.Error(), fmt.Sprintf("reading %s: its ", path)) {
				t.Errorf("cut%s after %d of %d bytes: %q, %v, want that %s is truncated there", suffix, n, len(content), lines, err, path)
			}
		}
	}
}

func TestCorruptFilesNameFileAndOffset(t *testing.T) {
	w := newWorld(t)
	text := lines60(1 << 20)
	for suffix, pack := range packings {
		good := pack(text)
		for name, spoil := range map[string]func([]byte) []byte{
			"header":  func(b []byte) []byte { b[0] ^= 1; return b },
			"data":    func(b []byte) []byte { b[len(b)/2] ^= 0x55; b[len(b)/2+1] ^= 0x55; return b },
			"sum":     func(b []byte) []byte { b[len(b)-map[string]int{".gz": 8, ".zst": 1}[suffix]] ^= 1; return b },
			"garbage": func(b []byte) []byte { return append(b, "this is no member"...) },
			"text":    func([]byte) []byte { return []byte("this is plain text, by another name\n") },
			"short":   func([]byte) []byte { return []byte("text\n") },
		} {
			content := spoil(bytes.Clone(good))
			path := w.write(name+suffix, content)
			_, err := w.readAll([]msg.Piece{{Path: path, Length: int64(len(content))}}, 64<<10)
			data, ok := errors.AsType[*DataError](err)
			if !ok || data.Path != path || data.Offset < 0 || data.Offset > int64(len(content)) || data.Cause == nil {
				t.Errorf("%s%s: error %v, want a DataError about it", name, suffix, err)
				continue
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s%s is called truncated: %v", name, suffix, err)
			}
			if name == "data" && (data.Offset < int64(len(content)/2) || data.Offset > int64(len(content))) {
				t.Errorf("%s%s: spoilt at byte %d, reported at %d", name, suffix, len(content)/2, data.Offset)
			}
			if name == "garbage" && data.Offset < int64(len(good)) {
				t.Errorf("%s%s: spoilt at byte %d, reported at %d", name, suffix, len(good), data.Offset)
			}
		}
	}
}

func TestLinesBeforeTheDamageAreAnswered(t *testing.T) {
	w := newWorld(t)
	content := gzipped1([]byte("one\ntwo\n"))
	content = content[:len(content)-2]
	r := Open(context.Background(), w.grants, &budget{}, []msg.Piece{{Path: w.write("cut.gz", content), Length: 1}})
	defer r.Close()
	buf := make([]byte, 100)
	n, err := r.Next(buf)
	if want := "\x03one\x03two"; err != nil || string(buf[:n]) != want {
		t.Errorf("%q, %v, want %q", buf[:n], err, want)
	}
	for range 2 {
		if n, err := r.Next(buf); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("then: %d, %v, want the damage", n, err)
		}
	}
}

func TestUnpackingDrawsItsMemory(t *testing.T) {
	w := newWorld(t)
	var large bytes.Buffer
	enc, err := zstd.NewWriter(&large, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	enc.Write(lines60(1 << 20))
	enc.Close()
	for name, content := range map[string][]byte{"a.gz": gzipped1([]byte("x\n")), "a.zst": large.Bytes()} {
		mem := &budget{}
		pieces := []msg.Piece{{Path: w.write(name, content), Length: int64(len(content))}}
		r := Open(context.Background(), w.grants, mem, pieces)
		if _, err := drain(r, 1000); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
		want := int64(bufferSize + packedBuffer + gzipMemory)
		if name == "a.zst" {
			want = 128 << 20
		}
		if mem.peak < want || mem.used != 0 {
			t.Errorf("%s drew %d bytes and kept %d, want %d and none", name, mem.peak, mem.used, want)
		}
		r = Open(context.Background(), w.grants, &budget{limit: want / 2}, pieces)
		_, err := drain(r, 1000)
		r.Close()
		if !errors.Is(err, errNoMemory) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with half of it: error %v, want the memory's, with the file's name", name, err)
		}
		if _, ok := errors.AsType[*DataError](err); ok {
			t.Errorf("%s: a lack of memory is reported as bad data: %v", name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(gzipped1([]byte("one\ntwo\n")), true)
	f.Add(zstd1([]byte("one\ntwo\n")), false)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, true)
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, content []byte, gz bool) {
		name := "f.zst"
		if gz {
			name = "f.gz"
		}
		path := w.write(name, content)
		defer os.Remove(path)
		_, err := w.readAll([]msg.Piece{{Path: path, Length: int64(len(content))}}, 100)
		if _, ok := errors.AsType[*DataError](err); err != nil && !ok {
			t.Fatalf("%q: error %v, want lines or a DataError", content, err)
		}
	})
}
