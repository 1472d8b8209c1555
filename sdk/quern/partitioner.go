package quern

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// layout says where the keys of a pair RDD lie: which partition has which, and
// that each partition is in the order of the keys' bytes. RDDs that are laid out
// alike are joined without moving them again.
type layout struct {
	kind   abi.PartitionerKind
	n      int
	bounds [][]byte // PartitionRange
}

// like says whether two layouts put every key into the same partition. Bounds
// and functions are compared by identity.
func (l *layout) like(o *layout) bool {
	return l != nil && o != nil && (l == o || l.kind == abi.PartitionHash && o.kind == abi.PartitionHash && l.n == o.n)
}

// reusable says whether other RDDs can be shuffled into the layout by what is in
// it. A function's cannot: it is with the Partitioner.
func (l *layout) reusable() bool { return l.kind != abi.PartitionGiven }

func hashLayout(n int) *layout { return &layout{kind: abi.PartitionHash, n: n} }

// Partitioner says which partition a key belongs to. Make one, and use the same
// one for all RDDs that shall be laid out alike.
type Partitioner[K any] struct {
	lay *layout
	f   func(K) int // PartitionGiven
	err error
}

// HashPartitioner spreads keys over n partitions by a hash of their encoding,
// which is the same on every machine.
func HashPartitioner[K any](n int) Partitioner[K] {
	return Partitioner[K]{lay: hashLayout(n), err: checkPartitions(n)}
}

// RangePartitioner makes len(bounds)+1 partitions: a key goes to the partition
// whose number is how many bounds are at or below it. Bounds are ascending.
func RangePartitioner[K any](bounds ...K) Partitioner[K] {
	p := Partitioner[K]{lay: &layout{kind: abi.PartitionRange, n: len(bounds) + 1}}
	c, err := keyCodecOf[K](false)
	if err != nil {
		p.err = err
		return p
	}
	for i := range bounds {
		var e encoder
		c.enc(&e, unsafe.Pointer(&bounds[i]))
		if i > 0 && bytes.Compare(p.lay.bounds[i-1], e.b) > 0 {
			p.err = fmt.Errorf("the partitioner's bounds are not ascending: %v is followed by %v", bounds[i-1], bounds[i])
		}
		p.lay.bounds = append(p.lay.bounds, e.b)
	}
	return p
}

// FuncPartitioner puts a key into the partition that f returns, in [0, n). f
// must return the same for equal keys; any other number fails the task.
func FuncPartitioner[K any](n int, f func(K) int) Partitioner[K] {
	p := Partitioner[K]{lay: &layout{kind: abi.PartitionGiven, n: n}, f: f, err: checkPartitions(n)}
	if f == nil {
		p.err = errors.New("the partitioner's function is nil")
	}
	return p
}

// NumPartitions returns the number of partitions.
func (p Partitioner[K]) NumPartitions() int {
	if p.lay == nil {
		return 0
	}
	return p.lay.n
}

func (p Partitioner[K]) check() error {
	if p.err == nil && p.lay == nil {
		return errors.New("a zero Partitioner; use HashPartitioner, RangePartitioner or FuncPartitioner")
	}
	return p.err
}

// shuffleParts is the number of partitions of a shuffle: what the user asked
// for, else the largest of the parents'. It never depends on the machine.
func shuffleParts(asked []int, parents ...*node) (int, error) {
	switch {
	case len(asked) == 1:
		return asked[0], checkPartitions(asked[0])
	case len(asked) > 1:
		return 1, errors.New("more than one number of partitions")
	}
	n := 1
	for _, p := range parents {
		n = max(n, p.parts)
	}
	return n, nil
}
