package abi

// Descriptors travel as CBOR maps with the integer keys given in the tags. The
// host decodes them with a library and strict options; a guest writes them with
// AppendCBOR of this package. Fields with their zero value may be left out.

// ContextDesc opens the driver's context.
type ContextDesc struct {
	Version int               `cbor:"1,keyasint"`
	SDK     string            `cbor:"2,keyasint,omitempty"` // name and version of the SDK, for people
	AppName string            `cbor:"3,keyasint,omitempty"`
	Conf    map[string]string `cbor:"4,keyasint,omitempty"`
}

// RDDDesc defines an RDD. The guest numbers its RDDs and shuffles from 1.
type RDDDesc struct {
	ID       uint32 `cbor:"1,keyasint"`
	Name     string `cbor:"2,keyasint,omitempty"` // the operation, such as "map" or "textFile"
	CallSite string `cbor:"3,keyasint,omitempty"` // the user's file:line
	// Partitions is their number. 0 asks the host to derive it: from the files
	// of a text source, or from the dependencies.
	Partitions int       `cbor:"4,keyasint,omitempty"`
	Deps       []DepDesc `cbor:"5,keyasint,omitempty"` // in the order of the parents
	Text       *TextDesc `cbor:"6,keyasint,omitempty"` // set for a text source
}

// DepKind is the kind of a dependency on a parent RDD.
type DepKind uint32

const (
	// DepOneToOne: partition i reads partition i of the parent.
	DepOneToOne DepKind = 1
	// DepRange: partition Start+i reads partition i of the parent (union).
	DepRange DepKind = 2
	// DepCoalesce: partition i of n reads the parent's partitions
	// [i*m/n, (i+1)*m/n) of m.
	DepCoalesce DepKind = 3
	// DepShuffle: partition i reads partition i of the shuffle.
	DepShuffle DepKind = 4
)

// DepDesc is one dependency.
type DepDesc struct {
	Parent  uint32       `cbor:"1,keyasint"`
	Kind    DepKind      `cbor:"2,keyasint"`
	Start   int          `cbor:"3,keyasint,omitempty"` // DepRange
	Shuffle *ShuffleDesc `cbor:"4,keyasint,omitempty"` // DepShuffle
}

// PartitionerKind says how the host finds a record's partition.
type PartitionerKind uint32

const (
	// PartitionHash: by a hash of the key's bytes, HashPartition.
	PartitionHash PartitionerKind = 1
	// PartitionRange: the number of Bounds that are <= the key, by bytes; see
	// RangePartition.
	PartitionRange PartitionerKind = 2
	// PartitionGiven: the key begins with the partition, 4 bytes big-endian,
	// which the host takes off. A partition out of range fails the task.
	PartitionGiven PartitionerKind = 3
)

// ShuffleDesc describes one shuffle.
type ShuffleDesc struct {
	ID          uint32          `cbor:"1,keyasint"`
	Partitioner PartitionerKind `cbor:"2,keyasint"`
	Partitions  int             `cbor:"3,keyasint"`           // >= 1
	Bounds      [][]byte        `cbor:"4,keyasint,omitempty"` // PartitionRange: ascending, at most Partitions-1
	// Sorted delivers each partition in the order of the keys' bytes, equal keys
	// in the order of (map partition, write). Otherwise in that latter order
	// alone.
	Sorted bool `cbor:"5,keyasint,omitempty"`
}

// TextDesc is a source of lines.
type TextDesc struct {
	// Paths are files, folders or globs, as the user wrote them.
	Paths []string `cbor:"1,keyasint"`
	// MinPartitions is a hint: more, smaller splits are made to reach it.
	MinPartitions int `cbor:"2,keyasint,omitempty"`
}

// JobDesc runs an action.
type JobDesc struct {
	RDD      uint32 `cbor:"1,keyasint"`
	Action   uint32 `cbor:"2,keyasint"` // given to the task entry as its id
	Name     string `cbor:"3,keyasint,omitempty"`
	CallSite string `cbor:"4,keyasint,omitempty"`
	// Partitions to run, each once, in the order in which results are wanted;
	// nil for all, ascending.
	Partitions []int     `cbor:"5,keyasint,omitempty"`
	Sink       *SinkDesc `cbor:"6,keyasint,omitempty"`
	// Dropped are shuffles that nothing in the driver refers to any more: no later
	// job reads them, and the host may forget their data.
	Dropped []uint32 `cbor:"7,keyasint,omitempty"`
}

// SinkDesc is a committed output folder with one file a partition.
type SinkDesc struct {
	Path        string `cbor:"1,keyasint"`
	Compression string `cbor:"2,keyasint,omitempty"` // "", "gzip" or "zstd"
}
