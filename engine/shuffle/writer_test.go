package shuffle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

func TestAMalformedBatchIsAnError(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	tooLong := binary.AppendUvarint(binary.AppendUvarint(nil, abi.MaxRecord), 1)
	for name, batch := range map[string][]byte{
		"cut head":         {1},
		"cut key":          {3, 0, 'a'},
		"cut value":        {0, 3, 'a'},
		"endless number":   bytes.Repeat([]byte{0xff}, 30),
		"length overflows": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"record too long":  tooLong,
		"second one cut":   append(batchOf(kv{"a", "b"}), 9),
	} {
		w.task(0, func(c Config) {
			d := abi.ShuffleDesc{ID: 2, Partitioner: abi.PartitionHash, Partitions: 3}
			wr, err := NewWriter(c, d, 5, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer wr.Abort()
			err = wr.Write(batch)
			if err == nil || !strings.Contains(err.Error(), "shuffle 2, output of map 5: malformed batch") {
				t.Errorf("%s: the error is %v", name, err)
			}
			if _, again := wr.Commit(); again != err {
				t.Errorf("%s: it is committed all the same: %v", name, again)
			}
		})
	}
}

func TestAGivenPartitionMustExist(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 2, Partitioner: abi.PartitionGiven, Partitions: 3}
	for key, want := range map[string]string{
		"\x00\x00\x00\x03x": "a record for partition 3, but there are partitions 0 to 2",
		"\xff\xff\xff\xff":  "a record for partition 4294967295",
		"\x00\x00\x00":      "a key of 3 bytes",
	} {
		w.task(0, func(c Config) {
			wr, err := NewWriter(c, d, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer wr.Abort()
			if err := wr.Write(batchOf(kv{key, "v"})); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error of %q is %v", key, err)
			}
		})
	}
}

func TestImpossibleShufflesAreRefused(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	w.task(0, func(c Config) {
		for _, d := range []abi.ShuffleDesc{
			{ID: 1, Partitioner: abi.PartitionHash},
			{ID: 1, Partitioner: abi.PartitionHash, Partitions: 1<<24 + 1},
			{ID: 1, Partitioner: 9, Partitions: 1},
			{ID: 1, Partitioner: abi.PartitionRange, Partitions: 1, Bounds: [][]byte{{1}}},
			{ID: 1, Partitioner: abi.PartitionRange, Partitions: 3, Bounds: [][]byte{{2}, {1}}},
		} {
			if _, err := NewWriter(c, d, 0, 1); err == nil || !strings.HasPrefix(err.Error(), "shuffle 1") {
				t.Errorf("%+v: the error is %v", d, err)
			}
		}
		d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 4}
		if _, err := NewReader(c, d, 4, nil); err == nil {
			t.Error("a partition that is not there can be read")
		}
		c.Compression = "lzma"
		if _, err := NewWriter(c, d, 0, 1); err == nil || !strings.Contains(err.Error(), `"lzma"`) {
			t.Errorf("the error of an unknown compression is %v", err)
		}
	})
}

func TestAnotherConsumerOfTheTaskMakesTheWriterSpill(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 4, Sorted: true}
	var recs []kv
	for i := range 20000 {
		recs = append(recs, kv{fmt.Sprint(i), "value"})
	}
	var out msg.MapOutput
	const limit = 4 << 20
	w.task(limit, func(c Config) {
		wr, err := NewWriter(c, d, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer wr.Abort()
		if err := wr.Write(batchOf(recs...)); err != nil {
			t.Fatal(err)
		}
		grown := int64(0)
		for wr.Metrics().Spills == 0 { // a linear memory grows
			if err := c.Memory.Acquire(64 << 10); err != nil {
				t.Fatalf("after %d bytes: %v", grown, err)
			}
			grown += 64 << 10
		}
		if c.Memory.Used() > limit {
			t.Errorf("the task holds %d bytes", c.Memory.Used())
		}
		if out, err = wr.Commit(); err != nil {
			t.Fatal(err)
		}
		if m := wr.Metrics(); m.MemorySpilled == 0 || m.DiskSpilled == 0 {
			t.Errorf("the spill is not counted: %+v", m)
		}
		c.Memory.Release(grown)
	})
	want := model(d, [][]kv{recs})
	for p := range want {
		got, _ := w.read(0, d, p, abi.BatchSize, out)
		if diff := cmp.Diff(want[p], recordsOf(t, got)); diff != "" {
			t.Errorf("partition %d differs (-want +got):\n%s", p, diff)
		}
	}
}

func TestAHugeRecordNeedsItsMemoryAndNoMore(t *testing.T) {
	w := newWorld(t, t.TempDir(), 256<<20)
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 2, Sorted: true}
	for _, size := range []int{2 << 20, 6 << 20, 20 << 20} { // the last is too large to be compressed
		huge := kv{"huge", strings.Repeat("0123456789", size/10)}
		recs := []kv{{"a", "1"}, huge, {"z", "2"}, {"huge", "small"}}
		plenty, tight := int64(3*size+2<<20), int64(size+1<<20) // tight: none is left for compressing it
		for _, limit := range []int64{plenty, tight} {
			out, m := w.write(limit, d, 0, batchOf(recs[0]), batchOf(huge), batchOf(recs[2:]...))
			for p, want := range model(d, [][]kv{recs, recs}) {
				got, _ := w.read(2*plenty, d, p, abi.BatchSize, out, out)
				if !bytes.Equal(got, batchOf(want...)) {
					t.Errorf("%d bytes: partition %d differs", size, p)
				}
			}
			compressed := limit == plenty && size <= maxCompressed
			if small := m.FileBytes < m.Bytes/2; small != compressed {
				t.Errorf("a record of %d bytes takes %d in the file, with a limit of %d", size, m.FileBytes, limit)
			}
		}
		w.task(int64(size)/2, func(c Config) {
			wr, err := NewWriter(c, d, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer wr.Abort()
			var limit *memory.LimitError
			if err := wr.Write(batchOf(huge)); !errors.As(err, &limit) {
				t.Errorf("%d bytes: the error is %v", size, err)
			}
		})
	}
}

func TestNextAnswersTheSizeOfARecordThatDoesNotFit(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	for _, sorted := range []bool{false, true} {
		d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 1, Sorted: sorted}
		out, _ := w.write(0, d, 0, batchOf(kv{"a", "1"}, kv{"b", strings.Repeat("2", 500)}))
		w.task(0, func(c Config) {
			r, err := NewReader(c, d, 0, []msg.MapOutput{out, out})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			buf := make([]byte, 504)
			type step struct{ next, all int } // size of the next record, of what fits
			steps := []step{{4, 4}, {504, 504}, {4, 4}, {504, 504}}
			if sorted {
				steps = []step{{4, 8}, {504, 504}, {504, 504}}
			}
			for i, want := range steps {
				if n, err := r.Next(buf[:3]); n != want.next || err != nil {
					t.Fatalf("sorted %v, step %d: a short buffer gets %d instead of %d, %v", sorted, i, n, want.next, err)
				}
				if n, err := r.Next(buf); n != want.all || err != nil {
					t.Fatalf("sorted %v, step %d: %d instead of %d, %v", sorted, i, n, want.all, err)
				}
			}
			for range 2 {
				if n, err := r.Next(buf); n != 0 || err != io.EOF {
					t.Errorf("the end is %d, %v", n, err)
				}
			}
		})
	}
}

func TestAHundredThousandPartitions(t *testing.T) {
	w := newWorld(t, t.TempDir(), 256<<20)
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionGiven, Partitions: 100_000, Sorted: true}
	var batches [][]byte
	for i := range 50_000 { // every second partition, twice, backwards
		p := binary.BigEndian.AppendUint32(nil, uint32(99_998-i*2))
		b := appendRecord(nil, append(p, "key"...), fmt.Append(nil, i))
		batches = append(batches, append(b, b...))
	}
	// With spills, and without.
	small, m := w.write(3<<20, d, 0, batches...)
	large, _ := w.write(0, d, 1, batches...)
	if m.Spills == 0 {
		t.Error("nothing was spilled")
	}
	for _, p := range []int{0, 1, 2, 1022, 1024, 1026, 49_998, 49_999, 99_998, 99_999} {
		got, _ := w.read(1<<20, d, p, abi.BatchSize, small, large)
		var want []byte
		if p%2 == 0 {
			r := appendRecord(nil, []byte("key"), fmt.Append(nil, (99_998-p)/2))
			want = bytes.Repeat(r, 4)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("partition %d has %d bytes instead of %d", p, len(got), len(want))
		}
	}
	one, _ := w.write(0, d, 2, batches[7])
	if one.Bytes > 300 {
		t.Errorf("empty partitions cost: one record takes %d bytes", one.Bytes)
	}
}

func TestThousandsOfMapsAreMergedInBoundedMemory(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 1, Sorted: true}
	value := strings.Repeat("v", 2000)
	var outs []msg.MapOutput
	var maps [][]kv
	for m := range 1200 {
		recs := []kv{{fmt.Sprint(m % 10), fmt.Sprint(m)}, {"same", value + fmt.Sprint(m)}}
		out, _ := w.write(0, d, m, batchOf(recs...))
		outs, maps = append(outs, out), append(maps, recs)
	}
	const limit = 1 << 20
	got, m := w.read(limit, d, 0, abi.BatchSize, outs...)
	if m.DiskSpilled == 0 {
		t.Error("all of it was merged at once")
	}
	if want := batchOf(model(d, maps)[0]...); !bytes.Equal(got, want) {
		t.Errorf("%d bytes differ from the %d of the model", len(got), len(want))
	}
	if n := len(w.files()); n != len(outs) {
		t.Errorf("%d files are left of %d", n, len(outs))
	}
}

func TestTasksThatShareASmallPoolGetWhatTheyNeed(t *testing.T) {
	w := newWorld(t, t.TempDir(), 3<<20)
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 6, Sorted: true}
	maps := make([][]kv, 6)
	for m := range maps {
		for i := range 30000 {
			maps[m] = append(maps[m], kv{fmt.Sprint(i * 7919 % 5000), strings.Repeat("v", i%90) + fmt.Sprint(m)})
		}
	}
	outs := make([]msg.MapOutput, len(maps))
	streams := make([][]byte, d.Partitions)
	spills := make([]int, len(maps))
	inSlots := func(n int, task func(c Config, i int) error) {
		var group errgroup.Group
		group.SetLimit(4)
		for i := range n {
			group.Go(func() error {
				mem := w.pool.NewTask(t.Context(), msg.TaskID(i), 0)
				c := w.conf
				c.Memory = mem
				err := task(c, i)
				if leaked := mem.Close(); leaked != 0 {
					t.Errorf("a task kept %d bytes", leaked)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	inSlots(len(maps), func(c Config, m int) error {
		wr, err := NewWriter(c, d, m, msg.TaskID(m))
		if err != nil {
			return err
		}
		defer wr.Abort()
		for recs := range slices.Chunk(maps[m], 100) {
			if err := wr.Write(batchOf(recs...)); err != nil {
				return err
			}
		}
		outs[m], err = wr.Commit()
		spills[m] = wr.Metrics().Spills
		return err
	})
	inSlots(d.Partitions, func(c Config, p int) error {
		r, err := NewReader(c, d, p, outs)
		if err != nil {
			return err
		}
		defer r.Close()
		streams[p], err = drain(r, abi.BatchSize)
		return err
	})
	for p, want := range model(d, maps) {
		if !bytes.Equal(streams[p], batchOf(want...)) {
			t.Errorf("partition %d differs", p)
		}
	}
	if slices.Max(spills) == 0 {
		t.Error("nothing was spilled")
	}
	if used := w.pool.Used(); used != 0 {
		t.Errorf("%d bytes of the pool are used in the end", used)
	}
}

func TestNothingIsLeftOfWhatIsGivenUp(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 3, Sorted: true}
	batch := batchOf(kv{"a", strings.Repeat("1", 30_000)}, kv{"b", strings.Repeat("2", 30_000)})
	w.conf.blockSize = 4096
	w.task(300<<10, func(c Config) {
		wr, err := NewWriter(c, d, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := wr.Write(batch); err != nil {
				t.Fatal(err)
			}
		}
		if wr.Metrics().Spills == 0 {
			t.Error("nothing was spilled")
		}
		wr.Abort()
		wr.Abort()
		if _, err := wr.Commit(); err == nil {
			t.Error("it can be committed after all")
		}
		if err := wr.Write(batch); err == nil {
			t.Error("it can be written to after all")
		}
	})
	if left := w.files(); len(left) > 0 {
		t.Errorf("a writer that was given up left %v", left)
	}
	var outs []msg.MapOutput
	for m := range 12 {
		out, _ := w.write(0, d, m, batch, batch)
		outs = append(outs, out)
	}
	w.task(400<<10, func(c Config) {
		r, err := NewReader(c, d, abi.HashPartition([]byte("a"), 3), outs)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.Next(make([]byte, 60_000)); err != nil || n < 30_000 {
			t.Errorf("the first read is %d, %v", n, err)
		}
		if r.Metrics().DiskSpilled == 0 {
			t.Error("all of it was merged at once")
		}
		r.Close()
		r.Close()
		if _, err := r.Next(make([]byte, 60_000)); err == nil || err == io.EOF {
			t.Errorf("it can be read after all: %v", err)
		}
	})
	if left := w.files(); len(left) != len(outs) {
		t.Errorf("a reader that was given up left %v", left)
	}
}

func TestRemoveTakesTheFilesOfOneShuffle(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	for _, id := range []uint32{1, 11, 2} {
		d := abi.ShuffleDesc{ID: id, Partitioner: abi.PartitionHash, Partitions: 1}
		w.write(0, d, 0, batchOf(kv{"a", "b"}))
		w.write(0, d, 1, batchOf(kv{"a", "b"}))
	}
	if err := os.WriteFile(w.dir+"/shuffle_1_reduce0_5.merge", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(w.dir, 1); err != nil {
		t.Fatal(err)
	}
	want := []string{"shuffle_11_0_100.data", "shuffle_11_1_101.data", "shuffle_2_0_100.data", "shuffle_2_1_101.data"}
	if diff := cmp.Diff(want, w.files()); diff != "" {
		t.Errorf("the files left differ (-want +got):\n%s", diff)
	}
	if err := Remove(w.dir+"/none", 1); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestOffsetsBeyondFourGiB(t *testing.T) {
	w := newWorld(t, t.TempDir(), 64<<20)
	path := w.dir + "/sparse"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 1000, Sorted: true}
	id := identity{shuffle: 1, mapPart: 2, task: 3, partitions: d.Partitions}
	const far = 5 << 30
	rec := batchOf(kv{"key", "value"})
	w.task(0, func(c Config) {
		b, err := newBlockWriter(c, "test")
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		b.open(f, far)
		var index indexWriter
		for p := range uint32(d.Partitions) {
			b.begin(p)
			if err := b.add(rec); err != nil {
				t.Fatal(err)
			}
			s, err := b.end()
			if err != nil {
				t.Fatal(err)
			}
			if err := index.add(b, p, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := index.finish(b, id); err != nil {
			t.Fatal(err)
		}
		out := msg.MapOutput{Shuffle: 1, Map: 2, Task: 3, Path: path, Bytes: b.position(), Records: 1000}
		for _, p := range []int{0, 511, 512, 999} {
			if got, _ := w.read(0, d, p, abi.BatchSize, out, out); !bytes.Equal(got, append(rec, rec...)) {
				t.Errorf("partition %d has %d bytes", p, len(got))
			}
		}
	})
}

// FuzzWriterBatch writes any batch with every partitioner.
func FuzzWriterBatch(f *testing.F) {
	f.Add(batchOf(kv{"a", "b"}, kv{"", ""}), uint8(1), true)
	f.Add(batchOf(kv{"\x00\x00\x00\x01key", "value"}), uint8(3), true)
	f.Add([]byte{0x81, 0x00, 0x80, 0x00, 'k'}, uint8(2), false) // numbers longer than needed
	f.Add([]byte{0x87, 0x00, 0x01, 0, 0, 0, 2, 'k', 'e', 'y', 'v'}, uint8(3), true)
	f.Fuzz(func(t *testing.T, batch []byte, partitioner uint8, sorted bool) {
		d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionerKind(partitioner%3 + 1), Partitions: 3, Sorted: sorted}
		if d.Partitioner == abi.PartitionRange {
			d.Bounds = [][]byte{{1}, []byte("key")}
		}
		want, valid := decodeAsSpecified(batch, d)
		w := newWorld(t, t.TempDir(), 8<<20)
		var out msg.MapOutput
		w.task(0, func(c Config) {
			wr, err := NewWriter(c, d, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer wr.Abort()
			if err = wr.Write(batch); (err == nil) != valid {
				t.Fatalf("valid is %v, the error %v", valid, err)
			}
			if err == nil {
				if out, err = wr.Commit(); err != nil {
					t.Fatal(err)
				}
			}
		})
		if !valid {
			if left := w.files(); len(left) > 0 {
				t.Fatalf("it left %v", left)
			}
			return
		}
		for p, recs := range model(d, [][]kv{want}) {
			got, _ := w.read(0, d, p, abi.BatchSize, out)
			if diff := cmp.Diff(recs, recordsOf(t, got)); diff != "" {
				t.Fatalf("partition %d differs (-want +got):\n%s", p, diff)
			}
		}
	})
}

// decodeAsSpecified reads a batch by the book.
func decodeAsSpecified(b []byte, d abi.ShuffleDesc) (recs []kv, valid bool) {
	r := bytes.NewReader(b)
	for r.Len() > 0 {
		klen, err1 := binary.ReadUvarint(r)
		vlen, err2 := binary.ReadUvarint(r)
		if err1 != nil || err2 != nil || klen > abi.MaxRecord || vlen > abi.MaxRecord || klen+vlen > uint64(r.Len()) {
			return nil, false
		}
		rec := make([]byte, klen+vlen)
		io.ReadFull(r, rec)
		if d.Partitioner == abi.PartitionGiven && (klen < 4 || binary.BigEndian.Uint32(rec) >= uint32(d.Partitions)) {
			return nil, false
		}
		recs = append(recs, kv{string(rec[:klen]), string(rec[klen:])})
	}
	return recs, true
}
