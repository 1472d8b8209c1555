package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// lines60 is about n bytes of lines of 60 bytes on average.
func lines60(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%08d the quick brown fox jumps over the lazy do%.*s\n", i, i%20, "gggggggggggggggggggg")
	}
	return b.Bytes()
}

func benchmarkPieces(b *testing.B, w *world, pieces []msg.Piece, bytes int) {
	buf := make([]byte, abi.BatchSize)
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		r := Open(context.Background(), w.grants, &w.mem, pieces)
		for {
			_, err := r.Next(buf)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		r.Close()
	}
}

func BenchmarkLines(b *testing.B) {
	text := lines60(64 << 20)
	for name, pack := range map[string]func([]byte) []byte{
		"text":     func(b []byte) []byte { return b },
		"text.gz":  gzipped1,
		"text.zst": zstd1,
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			packed := pack(text)
			path := w.write(name, packed)
			benchmarkPieces(b, w, cut(path, int64(len(packed)), nil), len(text))
		})
	}
}

func BenchmarkSmallFiles(b *testing.B) {
	w := newWorld(b)
	text := lines60(10 << 10)
	var pieces []msg.Piece
	for i := range 10_000 {
		path := w.write(fmt.Sprintf("a/b/c/d%03d/f%05d", i/20, i), text)
		pieces = append(pieces, msg.Piece{Path: path, Length: int64(len(text))})
	}
	b.Run("read", func(b *testing.B) { benchmarkPieces(b, w, pieces, len(text)*len(pieces)) })
	b.Run("plan", func(b *testing.B) {
		for b.Loop() {
			if _, err := Plan(w.grants, abi.TextDesc{Paths: []string{"a"}}, Options{TargetBytes: 32 << 20}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func gzipped1(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text)
	w.Close()
	return b.Bytes()
}

func zstd1(text []byte) []byte {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	defer w.Close()
	return w.EncodeAll(text, nil)
}
