package shuffle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// victim is a map output with a few partitions and several blocks.
func victim(t *testing.T, sorted bool) (*world, abi.ShuffleDesc, msg.MapOutput, []byte, [][]byte) {
	t.Helper()
	w := newWorld(t, t.TempDir(), 64<<20)
	w.conf.blockSize = 200
	d := abi.ShuffleDesc{ID: 3, Partitioner: abi.PartitionHash, Partitions: 3, Sorted: sorted}
	var recs []kv
	for i := range 40 {
		recs = append(recs, kv{fmt.Sprint("key", i%20), strings.Repeat("x", i)})
	}
	out, _ := w.write(0, d, 4, batchOf(recs...))
	file, err := os.ReadFile(out.Path)
	if err != nil {
		t.Fatal(err)
	}
	streams := make([][]byte, d.Partitions)
	for p := range streams {
		streams[p], _ = w.read(0, d, p, abi.BatchSize, out)
	}
	return w, d, out, file, streams
}

// fetchAll reads every partition. Each must either be right or be reported.
func fetchAll(t *testing.T, w *world, d abi.ShuffleDesc, out msg.MapOutput, streams [][]byte) (lost []*FetchError) {
	t.Helper()
	for p, want := range streams {
		w.task(0, func(c Config) {
			var got []byte
			r, err := NewReader(c, d, p, []msg.MapOutput{out})
			if err == nil {
				got, err = drain(r, abi.BatchSize)
				r.Close()
			}
			var fetch *FetchError
			switch {
			case errors.As(err, &fetch):
				lost = append(lost, fetch)
			case err != nil:
				t.Fatalf("partition %d: not a fetch failure: %v", p, err)
			case !bytes.Equal(got, want):
				t.Fatalf("partition %d has other records, without an error", p)
			}
		})
	}
	return lost
}

func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFlippedBitIsNoticed(t *testing.T) {
	for _, sorted := range []bool{false, true} {
		w, d, out, file, streams := victim(t, sorted)
		for i := range file {
			bad := bytes.Clone(file)
			bad[i] ^= 1 << (i % 8)
			rewrite(t, out.Path, bad)
			if len(fetchAll(t, w, d, out, streams)) == 0 {
				t.Fatalf("sorted %v: a bit of byte %d of %d was flipped, and nobody noticed", sorted, i, len(file))
			}
		}
	}
}

func TestEveryTruncationIsNoticed(t *testing.T) {
	w, d, out, file, streams := victim(t, true)
	for n := range len(file) {
		rewrite(t, out.Path, file[:n])
		if got := len(fetchAll(t, w, d, out, streams)); got != d.Partitions {
			t.Fatalf("the file was cut to %d of %d bytes, and %d partitions noticed", n, len(file), got)
		}
	}
	// What comes behind the end is nobody's.
	rewrite(t, out.Path, append(bytes.Clone(file), 0))
	if lost := fetchAll(t, w, d, out, streams); len(lost) > 0 {
		t.Errorf("a byte was appended, and the file is lost: %v", lost[0])
	}
}

func TestABlockThatIsCutWhileItIsReadIsNoticed(t *testing.T) {
	w, d, out, _, _ := victim(t, false)
	w.task(0, func(c Config) {
		r, err := NewReader(c, d, 0, []msg.MapOutput{out})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		next, err := r.nextRun()
		if err != nil || next == nil {
			t.Fatalf("partition 0 is not there: %v", err)
		}
		if err := os.Truncate(out.Path, next.offset+next.length/2); err != nil {
			t.Fatal(err)
		}
		r.runs = []*run{next}
		_, err = drain(r, abi.BatchSize)
		var fetch *FetchError
		if !errors.As(err, &fetch) || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestALostMapOutputIsNamedInFull(t *testing.T) {
	w, d, out, file, streams := victim(t, true)
	bad := bytes.Clone(file)
	bad[40] ^= 1 // in the first block
	rewrite(t, out.Path, bad)
	lost := fetchAll(t, w, d, out, streams)
	if len(lost) != 1 {
		t.Fatalf("%d partitions are lost", len(lost))
	}
	e := lost[0]
	if e.Shuffle != 3 || e.Map != 4 || e.Task != 104 || e.Block != 0 || e.Offset != 0 || e.Path != out.Path {
		t.Errorf("the error is %#v", e)
	}
	for _, part := range []string{"shuffle 3", "map 4", out.Path, "block 0 at offset 0", "checksum", "must run again"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q is not in the message: %v", part, e)
		}
	}
	os.Remove(out.Path)
	for _, e := range fetchAll(t, w, d, out, streams) {
		if !errors.Is(e, fs.ErrNotExist) || !strings.Contains(e.Error(), out.Path) {
			t.Errorf("the error of a missing file is %v", e)
		}
	}
}

func TestTheFileOfAnotherAttemptIsRefused(t *testing.T) {
	w, d, out, file, streams := victim(t, true)
	other := out
	other.Task++
	other.Path = filepath.Join(w.dir, "other")
	rewrite(t, other.Path, file)
	if lost := fetchAll(t, w, d, other, streams); len(lost) != d.Partitions || !strings.Contains(lost[0].Error(), "task 104") {
		t.Errorf("it was not noticed: %v", lost)
	}
}

// FuzzReaderFile reads any file as a map output.
func FuzzReaderFile(f *testing.F) {
	w, d, out := fuzzVictim(f)
	file, err := os.ReadFile(out.Path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add(file[:len(file)-1])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzRead(t, w, d, out, b)
	})
}

// FuzzReaderSealed reads files whose checksums are right, whatever they say.
func FuzzReaderSealed(f *testing.F) {
	w, d, out := fuzzVictim(f)
	f.Add(batchOf(kv{"k", "v"}), uint32(1), uint32(4), uint32(1), []byte{2, 36, 1, 4}, uint32(2), uint32(1), uint64(0), uint64(36))
	f.Add([]byte("\x04\x0cabcd"), uint32(1), uint32(4), uint32(2), []byte{2, 38, 1, 9}, uint32(2), uint32(9), uint64(0), uint64(38))
	f.Fuzz(func(t *testing.T, payload []byte, codec, raw, records uint32, page []byte, first, entries uint32, data, at uint64) {
		le := binary.LittleEndian
		b := make([]byte, blockHeaderSize)
		blockHeader{
			partition: 2, raw: int(raw), stored: len(payload), records: records, codec: codecOfNumber(codec), sum: xxh3.Hash(payload),
		}.put(b)
		b = append(append(b, payload...), page...)
		dirAt := len(b)
		b = le.AppendUint32(b, first)
		b = le.AppendUint32(b, entries)
		b = le.AppendUint64(b, data)
		b = le.AppendUint64(b, at)
		b = le.AppendUint32(b, uint32(len(page)))
		b = le.AppendUint64(b, xxh3.Hash(page))
		x := le.AppendUint32(nil, uint32(out.Shuffle))
		x = le.AppendUint32(x, uint32(out.Map))
		x = le.AppendUint64(x, uint64(out.Task))
		x = le.AppendUint32(x, uint32(d.Partitions))
		x = le.AppendUint32(x, 1)
		x = le.AppendUint64(x, uint64(dirAt))
		x = le.AppendUint64(x, 1)
		x = le.AppendUint64(x, xxh3.Hash(b[dirAt:]))
		x = le.AppendUint64(x, xxh3.Hash(x))
		fuzzRead(t, w, d, out, append(append(b, x...), magic...))
	})
}

func codecOfNumber(n uint32) codec { return codec(n % 4) }

func fuzzVictim(f *testing.F) (*world, abi.ShuffleDesc, msg.MapOutput) {
	f.Helper()
	w := newWorld(f, f.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 3, Partitioner: abi.PartitionHash, Partitions: 5, Sorted: true}
	out, _ := w.write(0, d, 1, batchOf(kv{"a", "1"}, kv{"b", "2"}, kv{"c", "3"}, kv{"a", "4"}))
	return w, d, out
}

// fuzzRead reads a file twice, alone and merged with itself, within a limit.
func fuzzRead(t *testing.T, w *world, d abi.ShuffleDesc, out msg.MapOutput, b []byte) {
	w.t = t
	out.Path = filepath.Join(t.TempDir(), "file")
	out.Bytes = int64(len(b))
	rewrite(t, out.Path, b)
	for _, outs := range [][]msg.MapOutput{{out}, {out, out}} {
		w.task(32<<20, func(c Config) {
			r, err := NewReader(c, d, 2, outs)
			if err != nil {
				return
			}
			defer r.Close()
			if stream, err := drain(r, abi.BatchSize); err == nil {
				recordsOf(t, stream)
			}
		})
	}
}
