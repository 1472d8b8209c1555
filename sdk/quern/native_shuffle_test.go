//go:build !wasip1

package quern

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/abi"
)

type keyValue struct{ Key, Value string }

func appendRecord(b []byte, kv keyValue) []byte {
	b = binary.AppendUvarint(b, uint64(len(kv.Key)))
	b = binary.AppendUvarint(b, uint64(len(kv.Value)))
	return append(append(b, kv.Key...), kv.Value...)
}

func newTestShuffle(d abi.ShuffleDesc) *nativeShuffle {
	d.ID = 1
	s := &nativeShuffle{desc: d}
	s.begin()
	return s
}

func writeRecords(s *nativeShuffle, records ...keyValue) error {
	var batch []byte
	for _, kv := range records {
		batch = appendRecord(batch, kv)
	}
	return (&shuffleWritePort{shuffle: s}).write(batch)
}

func readRecords(t rapid.TB, s *nativeShuffle, partition int) []keyValue {
	t.Helper()
	b, err := readPort(&shuffleReadPort{batches: s.read(partition)}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var records []keyValue
	for len(b) > 0 {
		key, value, rest, ok := cutRecord(b)
		if !ok {
			t.Fatalf("a batch that is no sequence of records: %x", b)
		}
		records = append(records, keyValue{string(key), string(value)})
		b = rest
	}
	return records
}

func TestShuffleDeliversEachRecordToItsPartitionInOrder(t *testing.T) {
	// Few, short keys around the prefix that sorting compares first.
	key := rapid.OneOf(
		rapid.StringMatching(`[ab\x00]{0,3}`),
		rapid.StringMatching(`12345678[a\x00]{0,2}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		d := abi.ShuffleDesc{
			Partitions:  rapid.IntRange(1, 5).Draw(t, "partitions"),
			Partitioner: rapid.SampledFrom([]abi.PartitionerKind{abi.PartitionHash, abi.PartitionRange, abi.PartitionGiven}).Draw(t, "partitioner"),
			Sorted:      rapid.Bool().Draw(t, "sorted"),
		}
		if d.Partitioner == abi.PartitionRange {
			for range rapid.IntRange(0, d.Partitions-1).Draw(t, "bounds") {
				d.Bounds = append(d.Bounds, []byte(key.Draw(t, "bound")))
			}
			slices.SortFunc(d.Bounds, bytes.Compare)
		}
		s := newTestShuffle(d)
		want := make([][]keyValue, d.Partitions)
		for i, k := range rapid.SliceOf(key).Draw(t, "keys") {
			kv := keyValue{k, fmt.Sprint("value ", i)}
			var p int
			written := kv
			switch d.Partitioner {
			case abi.PartitionHash:
				p = abi.HashPartition([]byte(k), d.Partitions)
			case abi.PartitionRange:
				for _, b := range d.Bounds {
					if string(b) <= k {
						p++
					}
				}
			case abi.PartitionGiven:
				p = i % d.Partitions
				written.Key = string(binary.BigEndian.AppendUint32(nil, uint32(p))) + k
			}
			want[p] = append(want[p], kv)
			if err := writeRecords(s, written); err != nil {
				t.Fatal(err)
			}
		}
		for p := range d.Partitions {
			if d.Sorted {
				slices.SortStableFunc(want[p], func(a, b keyValue) int { return strings.Compare(a.Key, b.Key) })
			}
			for range 2 { // later jobs read the same
				if diff := cmp.Diff(want[p], readRecords(t, s, p)); diff != "" {
					t.Fatalf("partition %d (-want +got):\n%s", p, diff)
				}
			}
		}
	})
}

func TestShuffleBatchesHoldAboutBatchSizeAndWholeRecords(t *testing.T) {
	s := newTestShuffle(abi.ShuffleDesc{Partitioner: abi.PartitionHash, Partitions: 1})
	const records = 10_000
	for i := range records {
		value := strings.Repeat("v", 100)
		if i == records/2 {
			value = strings.Repeat("huge", abi.BatchSize)
		}
		if err := writeRecords(s, keyValue{fmt.Sprint(i), value}); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	for i, b := range s.read(0) {
		in := 0
		for at := b; len(at) > 0; in++ {
			_, _, rest, ok := cutRecord(at)
			if !ok {
				t.Fatalf("batch %d is cut within a record", i)
			}
			at = rest
		}
		if len(b) > abi.BatchSize && in > 1 {
			t.Errorf("batch %d has %d bytes and %d records", i, len(b), in)
		}
		count += in
	}
	if count != records {
		t.Errorf("%d records, want %d", count, records)
	}
	if n, most := len(s.read(0)), records*110/abi.BatchSize+4; n > most {
		t.Errorf("%d batches, want at most %d", n, most)
	}
}

func TestShuffleRefusesWhatItCannotPlace(t *testing.T) {
	hash := abi.ShuffleDesc{Partitioner: abi.PartitionHash, Partitions: 3}
	given := abi.ShuffleDesc{Partitioner: abi.PartitionGiven, Partitions: 3}
	record := appendRecord(nil, keyValue{"key", "value"})
	for name, c := range map[string]struct {
		desc  abi.ShuffleDesc
		batch []byte
		want  string
	}{
		"a cut record":          {hash, append(slices.Clone(record), record[:5]...), "the record at byte 10"},
		"a length without end":  {hash, bytes.Repeat([]byte{0xff}, 11), "the record at byte 0"},
		"lengths that overflow": {hash, binary.AppendUvarint(binary.AppendUvarint(nil, 1<<63), 1<<63), "the record at byte 0"},
		"partition out of range": {given, appendRecord(nil, keyValue{"\x00\x00\x00\x03key", ""}),
			"the partitioner answered partition 3, and there are 3: it must answer 0 to 2"},
		"a negative partition": {given, appendRecord(nil, keyValue{"\xff\xff\xff\xff", ""}), "answered partition -1"},
		"no partition":         {given, appendRecord(nil, keyValue{"\x00", ""}), "has 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&shuffleWritePort{shuffle: newTestShuffle(c.desc)}).write(c.batch)
			var coded *nativeError
			if !errors.As(err, &coded) || coded.code != abi.ErrBadArgument || !strings.Contains(coded.text, c.want) {
				t.Errorf("error %v, want a bad argument with %q", err, c.want)
			}
		})
	}
}

func FuzzShuffleBatch(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, keyValue{"a", "1"}), keyValue{"", ""}))
	f.Add([]byte{5, 5, 'x'})
	f.Fuzz(func(t *testing.T, batch []byte) {
		s := newTestShuffle(abi.ShuffleDesc{Partitioner: abi.PartitionHash, Partitions: 1})
		if err := (&shuffleWritePort{shuffle: s}).write(batch); err != nil {
			return
		}
		again := newTestShuffle(s.desc)
		if err := writeRecords(again, readRecords(t, s, 0)...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(readRecords(t, s, 0), readRecords(t, again, 0)); diff != "" {
			t.Error("records (-first +second time):\n" + diff)
		}
	})
}
