package shuffle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// model is a shuffle in a few lines: what each partition must deliver, given
// the records of each map.
func model(d abi.ShuffleDesc, maps [][]kv) [][]kv {
	parts := make([][]kv, d.Partitions)
	for _, recs := range maps {
		for _, r := range recs {
			p := 0
			switch d.Partitioner {
			case abi.PartitionHash:
				p = abi.HashPartition([]byte(r.Key), d.Partitions)
			case abi.PartitionRange:
				p = abi.RangePartition([]byte(r.Key), d.Bounds)
			case abi.PartitionGiven:
				p, r.Key = int(binary.BigEndian.Uint32([]byte(r.Key))), r.Key[4:]
			}
			parts[p] = append(parts[p], r)
		}
	}
	if d.Sorted {
		for _, recs := range parts {
			sort.SliceStable(recs, func(i, j int) bool { return recs[i].Key < recs[j].Key })
		}
	}
	return parts
}

// someKey is a key that collides in every way: short ones, equal prefixes of
// all lengths, zeros at the end.
func someKey(rnd *rand.Rand) string {
	shared := []string{"", "", "", "a", "same 8 b", "same prefix of more", "\x00\x00"}[rnd.IntN(7)]
	own := make([]byte, rnd.IntN(5))
	if rnd.IntN(3) == 0 {
		own = make([]byte, rnd.IntN(12))
	}
	for i := range own {
		own[i] = []byte{0, 0, 1, 'a', 'b', 0xff}[rnd.IntN(6)]
	}
	return shared + string(own)
}

// random draws the seed of what rapid would draw too small.
func random(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

func someBounds(rnd *rand.Rand, n int) (bounds [][]byte) {
	for range n {
		bounds = append(bounds, []byte(someKey(rnd)))
	}
	sort.Slice(bounds, func(i, j int) bool { return bytes.Compare(bounds[i], bounds[j]) < 0 })
	return bounds
}

func descs() *rapid.Generator[abi.ShuffleDesc] {
	return rapid.Custom(func(t *rapid.T) abi.ShuffleDesc {
		d := abi.ShuffleDesc{
			ID:          uint32(rapid.IntRange(1, 9).Draw(t, "shuffle")),
			Partitioner: abi.PartitionerKind(rapid.IntRange(1, 3).Draw(t, "partitioner")),
			Partitions:  rapid.SampledFrom([]int{1, 2, 3, 16, 17, 600, 5000}).Draw(t, "partitions"),
			Sorted:      rapid.Bool().Draw(t, "sorted"),
		}
		if d.Partitioner == abi.PartitionRange {
			d.Bounds = someBounds(random(t), rapid.IntRange(0, min(d.Partitions-1, 40)).Draw(t, "bounds"))
		}
		return d
	})
}

// mapsOf draws the records of some map tasks, numbered so that each is unique.
func mapsOf(t *rapid.T, d abi.ShuffleDesc, many bool) [][]kv {
	maps := make([][]kv, rapid.IntRange(0, 8).Draw(t, "maps"))
	if many {
		maps = make([][]kv, 12)
	}
	rnd := random(t)
	long := rapid.SampledFrom([]int{0, 200, 3000, 9000}).Draw(t, "long")
	for m := range maps {
		n := rapid.SampledFrom([]int{0, 1, 5, 100, 2000}).Draw(t, "records")
		if many {
			n = 1500
		}
		for i := range n {
			k := someKey(rnd)
			if d.Partitioner == abi.PartitionGiven {
				k = string(binary.BigEndian.AppendUint32(nil, uint32(rnd.IntN(d.Partitions)))) + k
			}
			v := fmt.Sprintf("%d.%d", m, i)
			if i%50 == 49 {
				v += strings.Repeat("v", long)
			}
			maps[m] = append(maps[m], kv{k, v})
		}
	}
	return maps
}

// batchesOf cuts records into batches.
func batchesOf(recs []kv) (batches [][]byte) {
	for n := 1; len(recs) > 0; n = n*3%301 + 1 {
		n := min(n, len(recs))
		batches = append(batches, batchOf(recs[:n]...))
		recs = recs[n:]
	}
	return batches
}

func TestAShuffleDeliversWhatTheModelDelivers(t *testing.T) {
	spills, rounds, runs := 0, int64(0), 0
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		w := newWorld(t, dir, 64<<20)
		w.conf.Compression = rapid.SampledFrom([]string{"s2", "none", "zstd"}).Draw(t, "compression")
		w.conf.blockSize = rapid.SampledFrom([]int{64, 1000, 4096, 0}).Draw(t, "block")
		w.conf.openFiles = rapid.SampledFrom([]int{2, 3, 0}).Draw(t, "open files")
		limit := int64(0)
		if w.conf.blockSize != 0 {
			limit = rapid.SampledFrom([]int64{0, 160 << 10, 350 << 10}).Draw(t, "limit")
		}
		d := descs().Draw(t, "desc")
		tight := rapid.IntRange(0, 4).Draw(t, "tight") == 0 // so that spills and rounds are sure to happen
		if tight {
			w.conf.blockSize, limit, d.Partitions, d.Bounds = 1000, 160<<10, 3, nil
		}
		if limit > 0 && w.conf.Compression == "zstd" {
			limit += codecZstd.memory()
		}
		maps := mapsOf(t, d, tight)
		outs := make([]msg.MapOutput, len(maps))
		for m, recs := range maps {
			batches := batchesOf(recs)
			var metrics WriteMetrics
			outs[m], metrics = w.write(limit, d, m, batches...)
			if outs[m].Records != int64(len(recs)) {
				t.Fatalf("map %d has %d records instead of %d", m, outs[m].Records, len(recs))
			}
			spills += metrics.Spills
			if d.Sorted && metrics.Spills > 0 { // the same file as without spilling
				written, err := os.ReadFile(outs[m].Path)
				if err != nil {
					t.Fatalf("%v", err)
				}
				w.write(0, d, m, batches...)
				again, err := os.ReadFile(outs[m].Path)
				if err != nil {
					t.Fatalf("%v", err)
				}
				if !bytes.Equal(written, again) {
					t.Fatalf("map %d: the file differs from the one that was written without spilling", m)
				}
			}
		}
		if n := len(w.files()); n > len(maps) {
			t.Fatalf("more files than maps: %v", w.files())
		}
		skew := rapid.IntRange(0, 1000).Draw(t, "partition")
		bufSize := rapid.SampledFrom([]int{1, 50, 4000, abi.BatchSize}).Draw(t, "buffer")
		for p, want := range model(d, maps) {
			if step := d.Partitions/16 + 1; p%step != skew%step {
				continue // some are enough when there are many
			}
			runs++
			got, metrics := w.read(limit, d, p, bufSize, outs...)
			rounds += metrics.DiskSpilled
			if diff := cmp.Diff(want, recordsOf(t, got)); diff != "" {
				t.Fatalf("partition %d differs (-want +got):\n%s", p, diff)
			}
			if metrics.Records != int64(len(want)) {
				t.Fatalf("partition %d: %d records are counted, %d were delivered", p, metrics.Records, len(want))
			}
		}
		if n := len(w.files()); n > len(maps) {
			t.Fatalf("reading left files: %v", w.files())
		}
	})
	t.Logf("%d partitions read, %d spills, %d bytes in merge rounds", runs, spills, rounds)
	if spills == 0 || rounds == 0 {
		t.Errorf("the test is too easy: %d spills, %d bytes in merge rounds", spills, rounds)
	}
}

func TestSortingIsThatOfTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := random(t)
		different := rapid.SampledFrom([]int{1, 2, 30, 1000}).Draw(t, "different keys")
		var all []string
		for range different {
			all = append(all, someKey(rnd))
		}
		var recs []kv
		for i := range rapid.SampledFrom([]int{1, 10, 100, 1000, 5000}).Draw(t, "records") {
			k := all[rnd.IntN(len(all))]
			if rnd.IntN(4) == 0 {
				k += string(binary.BigEndian.AppendUint64(nil, rnd.Uint64()))
			}
			recs = append(recs, kv{k, fmt.Sprint(i)})
		}
		d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 1, Sorted: true}
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		w := newWorld(t, dir, 64<<20)
		out, _ := w.write(0, d, 0, batchOf(recs...))
		got, _ := w.read(0, d, 0, abi.BatchSize, out)
		if diff := cmp.Diff(model(d, [][]kv{recs})[0], recordsOf(t, got)); diff != "" {
			t.Fatalf("the order differs (-want +got):\n%s", diff)
		}
	})
}

func TestRangePartitionsAreThoseOfTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := random(t)
		bounds := someBounds(rnd, rapid.IntRange(0, 60).Draw(t, "bounds"))
		p := newRangePartitioner(bounds)
		for range 50 {
			k := someKey(rnd)
			key := []byte(k)
			if got, want := p.partition(key, keyPrefix(key, 0, len(key))), abi.RangePartition(key, bounds); got != want {
				t.Fatalf("%q is put into %d instead of %d", k, got, want)
			}
		}
	})
}
