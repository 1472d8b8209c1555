package shuffle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kv is a record as a test writes it.
type kv struct{ Key, Value string }

// batchOf encodes records as a guest does.
func batchOf(recs ...kv) []byte {
	var b []byte
	for _, r := range recs {
		b = appendRecord(b, r.Key, r.Value)
	}
	return b
}

func appendRecord[T string | []byte](b []byte, key, value T) []byte {
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(append(b, key...), value...)
}

// recordsOf decodes a batch.
func recordsOf(t fataler, b []byte) (recs []kv) {
	t.Helper()
	for len(b) > 0 {
		r := parseRecord(b)
		if r.total > len(b) {
			t.Fatalf("a batch that was read is malformed after %d records", len(recs))
		}
		recs = append(recs, kv{string(b[r.key : r.key+r.klen]), string(b[r.key+r.klen : r.total])})
		b = b[r.total:]
	}
	return recs
}

// fataler is testing.TB or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is an executor with one folder and one pool.
type world struct {
	t    fataler
	dir  string
	pool *memory.Pool
	conf Config // without memory
}

func newWorld(t fataler, dir string, pool int64) *world {
	return &world{t: t, dir: dir, pool: memory.NewPool(pool), conf: Config{Dir: dir}}
}

// task runs f as a task with a memory limit, 0 for none, and checks that it
// gives all its memory back.
func (w *world) task(limit int64, f func(Config)) {
	w.t.Helper()
	mem := w.pool.NewTask(context.Background(), 1, limit)
	c := w.conf
	c.Memory = mem
	f(c)
	if leaked := mem.Close(); leaked != 0 {
		w.t.Fatalf("the task kept %d bytes", leaked)
	}
}

// write runs a map task over batches.
func (w *world) write(limit int64, d abi.ShuffleDesc, mapPart int, batches ...[]byte) (out msg.MapOutput, m WriteMetrics) {
	w.t.Helper()
	w.task(limit, func(c Config) {
		wr, err := NewWriter(c, d, mapPart, msg.TaskID(100+mapPart))
		if err != nil {
			w.t.Fatalf("NewWriter: %v", err)
		}
		defer wr.Abort()
		for _, b := range batches {
			scribbled := bytes.Clone(b)
			if err := wr.Write(scribbled); err != nil {
				w.t.Fatalf("Write: %v", err)
			}
			clear(scribbled) // a batch is not retained
		}
		if out, err = wr.Commit(); err != nil {
			w.t.Fatalf("Commit: %v", err)
		}
		m = wr.Metrics()
	})
	return out, m
}

// read runs a reduce task, with buffers of bufSize, and answers the stream.
func (w *world) read(limit int64, d abi.ShuffleDesc, partition, bufSize int, outs ...msg.MapOutput) (stream []byte, m ReadMetrics) {
	w.t.Helper()
	w.task(limit, func(c Config) {
		r, err := NewReader(c, d, partition, outs)
		if err != nil {
			w.t.Fatalf("NewReader: %v", err)
		}
		defer r.Close()
		if stream, err = drain(r, bufSize); err != nil {
			w.t.Fatalf("Next: %v", err)
		}
		m = r.Metrics()
	})
	return stream, m
}

// drain reads to the end as a guest does.
func drain(r *Reader, bufSize int) (stream []byte, err error) {
	buf := make([]byte, bufSize)
	for {
		n, err := r.Next(buf)
		switch {
		case errors.Is(err, io.EOF):
			return stream, nil
		case err != nil:
			return stream, err
		case n > len(buf):
			buf = make([]byte, n)
		case n == 0:
			return stream, errors.New("Next answered 0 without an error")
		default:
			stream = append(stream, buf[:n]...)
		}
	}
}

// files lists the world's folder.
func (w *world) files() (names []string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sort.Strings(names)
	return names
}

func TestAReducePartitionIsMergedByKeyFromAllMaps(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 7, Partitioner: abi.PartitionHash, Partitions: 1, Sorted: true}
	a, m := w.write(0, d, 0, batchOf(kv{"b", "1"}, kv{"a", "2"}), batchOf(kv{"b", "3"}))
	b, _ := w.write(0, d, 1, batchOf(kv{"", "4"}, kv{"b", "5"}, kv{"c", "6"}))
	got, rm := w.read(0, d, 0, abi.BatchSize, a, b)
	want := []kv{{"", "4"}, {"a", "2"}, {"b", "1"}, {"b", "3"}, {"b", "5"}, {"c", "6"}}
	if diff := cmp.Diff(want, recordsOf(t, got)); diff != "" {
		t.Errorf("the stream differs (-want +got):\n%s", diff)
	}
	if m.Records != 3 || a.Records != 3 || rm.Records != 6 || a.Bytes != m.FileBytes || m.Bytes != 12 {
		t.Errorf("the counts are wrong: %+v, %+v, %+v", a, m, rm)
	}
	if diff := cmp.Diff([]string{"shuffle_7_0_100.data", "shuffle_7_1_101.data"}, w.files()); diff != "" {
		t.Errorf("the files differ (-want +got):\n%s", diff)
	}
	if a.Path != filepath.Join(w.dir, "shuffle_7_0_100.data") {
		t.Errorf("the output lies in %s", a.Path)
	}
}

func TestUnsortedRecordsComeInTheOrderOfMapsAndWrites(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 7, Partitioner: abi.PartitionGiven, Partitions: 3}
	a, _ := w.write(0, d, 0, batchOf(kv{"\x00\x00\x00\x02b", "1"}, kv{"\x00\x00\x00\x00x", "9"}, kv{"\x00\x00\x00\x02a", "2"}))
	none, _ := w.write(0, d, 1)
	b, _ := w.write(0, d, 2, batchOf(kv{"\x00\x00\x00\x02", "3"}))
	if none.Path != "" || none.Records != 0 {
		t.Errorf("an output without records has a file: %+v", none)
	}
	got, _ := w.read(0, d, 2, abi.BatchSize, a, none, b)
	if diff := cmp.Diff([]kv{{"b", "1"}, {"a", "2"}, {"", "3"}}, recordsOf(t, got)); diff != "" {
		t.Errorf("the stream differs (-want +got):\n%s", diff)
	}
	if got, _ := w.read(0, d, 1, abi.BatchSize, a, none, b); len(got) != 0 {
		t.Errorf("an empty partition has %d bytes", len(got))
	}
}
