package sink

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
)

type unlimited struct{}

func (unlimited) Acquire(int64) error { return nil }
func (unlimited) Release(int64)       {}

// BenchmarkJob is the cost of a whole job of 1,000 attempts of 10 bytes each.
func BenchmarkJob(b *testing.B) {
	folder := b.TempDir()
	g, err := files.New(folder, nil, []string{folder})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	for n := 0; b.Loop(); n++ {
		s := msg.Sink{Path: filepath.Join(folder, fmt.Sprint("out", n))}
		if err := Begin(g, s); err != nil {
			b.Fatal(err)
		}
		var outputs []msg.SinkOutput
		for i := range 1000 {
			w, err := NewWriter(g, unlimited{}, s, i, msg.TaskID(i))
			if err != nil {
				b.Fatal(err)
			}
			w.Write([]byte("ten bytes\n"))
			o, err := w.Close()
			if err != nil {
				b.Fatal(err)
			}
			outputs = append(outputs, o)
		}
		if err := Commit(g, s, outputs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, compression := range []string{"", "gzip", "zstd"} {
		b.Run("compression="+compression, func(b *testing.B) {
			folder := b.TempDir()
			g, err := files.New(folder, nil, []string{folder})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			var batch []byte
			for i := 0; len(batch) < 64<<10; i++ {
				batch = fmt.Appendf(batch, "%08d the quick brown fox jumps over the lazy dog\n", i*i)
			}
			b.SetBytes(256 * int64(len(batch)))
			for n := 0; b.Loop(); n++ {
				s := msg.Sink{Path: filepath.Join(folder, fmt.Sprint("out", n)), Compression: compression}
				if err := Begin(g, s); err != nil {
					b.Fatal(err)
				}
				w, err := NewWriter(g, unlimited{}, s, 0, 1)
				if err != nil {
					b.Fatal(err)
				}
				for range 256 {
					if _, err := w.Write(batch); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := w.Close(); err != nil {
					b.Fatal(err)
				}
				if err := Abort(g, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
