//go:build !wasip1

package quern

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/quern-project/quern/sdk/abi"
)

// nativeShuffle keeps a shuffle's records in memory once its map stage has run,
// for all later jobs of the context.
type nativeShuffle struct {
	desc     abi.ShuffleDesc
	parent   *nativeRDD
	stage    *nativeStage // that fills it; nil before it runs first
	complete bool
	parts    []shufflePart // by reduce partition
}

// shufflePart holds records in the order of (map partition, write), or of their
// keys once sorted, in batches of whole records.
type shufflePart struct {
	batches [][]byte
	sorted  bool
}

// begin makes room for a map stage's records.
func (s *nativeShuffle) begin() { s.parts = make([]shufflePart, s.desc.Partitions) }

// drop forgets all records. A job that needs them computes them anew.
func (s *nativeShuffle) drop() { s.parts, s.complete = nil, false }

// partition finds a record's partition and what of the key is kept.
func (s *nativeShuffle) partition(key []byte) (int, []byte, error) {
	switch s.desc.Partitioner {
	case abi.PartitionHash:
		return abi.HashPartition(key, s.desc.Partitions), key, nil
	case abi.PartitionRange:
		return abi.RangePartition(key, s.desc.Bounds), key, nil
	}
	if len(key) < 4 {
		return 0, nil, badArgument("a record's key has %d bytes and should begin with 4 that name its partition", len(key))
	}
	p := binary.BigEndian.Uint32(key)
	if uint64(p) >= uint64(s.desc.Partitions) {
		return 0, nil, badArgument("the partitioner answered partition %d, and there are %d: "+
			"it must answer 0 to %d", int32(p), s.desc.Partitions, s.desc.Partitions-1)
	}
	return int(p), key[4:], nil
}

// read is a reduce partition's batches, sorted if the shuffle is. Only what is
// read is sorted.
func (s *nativeShuffle) read(partition int) [][]byte {
	p := &s.parts[partition]
	if s.desc.Sorted && !p.sorted {
		p.sort()
	}
	return p.batches
}

// append adds a record to the last batch or to a new one.
func (p *shufflePart) append(key, value []byte) {
	last := len(p.batches) - 1
	size := 2*binary.MaxVarintLen32 + len(key) + len(value)
	if last < 0 || len(p.batches[last])+size > abi.BatchSize {
		p.batches = append(p.batches, nil)
		last++
	}
	b := binary.AppendUvarint(p.batches[last], uint64(len(key)))
	b = binary.AppendUvarint(b, uint64(len(value)))
	p.batches[last] = append(append(b, key...), value...)
}

// sort orders by the keys' bytes, equal keys as they were.
func (p *shufflePart) sort() {
	type record struct {
		prefix     uint64 // of the key: settles most comparisons
		order      int
		key, value []byte
	}
	var records []record
	for _, b := range p.batches {
		for len(b) > 0 {
			var r record
			r.key, r.value, b, _ = cutRecord(b) // whole, since append wrote it
			var prefix [8]byte
			copy(prefix[:], r.key)
			r.prefix, r.order = binary.BigEndian.Uint64(prefix[:]), len(records)
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b record) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.order, b.order))
	})
	*p = shufflePart{sorted: true}
	for _, r := range records {
		p.append(r.key, r.value)
	}
}

// cutRecord splits the first record off a batch. The parts lie in b.
func cutRecord(b []byte) (key, value, rest []byte, ok bool) {
	k, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, nil, nil, false
	}
	b = b[n:]
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, nil, nil, false
	}
	b = b[n:]
	if k > abi.MaxRecord || v > abi.MaxRecord || k+v > uint64(len(b)) {
		return nil, nil, nil, false
	}
	return b[:k], b[k : k+v], b[k+v:], true
}

// shuffleReadPort reads one reduce partition.
type shuffleReadPort struct{ batches [][]byte }

func (p *shuffleReadPort) read(buf []byte) (int, error) {
	var n int
	n, p.batches = fillBatches(buf, p.batches)
	return n, nil
}

func (p *shuffleReadPort) close() error { return nil }
func (p *shuffleReadPort) abandon()     {}

// shuffleWritePort spreads one map task's records. The tasks of a stage run in
// order, and a stage that fails is begun anew, so records go straight to their
// places.
type shuffleWritePort struct{ shuffle *nativeShuffle }

func (p *shuffleWritePort) write(b []byte) error {
	for at := b; len(at) > 0; {
		key, value, rest, ok := cutRecord(at)
		if !ok {
			return badArgument("shuffle %d: the record at byte %d of a batch of %d is cut or malformed",
				p.shuffle.desc.ID, len(b)-len(at), len(b))
		}
		part, key, err := p.shuffle.partition(key)
		if err != nil {
			return err
		}
		p.shuffle.parts[part].append(key, value)
		at = rest
	}
	return nil
}

func (p *shuffleWritePort) close() error { return nil }
func (p *shuffleWritePort) abandon()     {}
