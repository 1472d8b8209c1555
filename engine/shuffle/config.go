package shuffle

import (
	"fmt"

	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/sdk/abi"
)

// Config is what writers and readers need of the executor.
type Config struct {
	// Dir is an existing folder for data files, spilled runs and merge files.
	Dir string
	// Compression of blocks: "s2" (the default, ""), "zstd" or "none". Readers
	// take what they find.
	Compression string
	// Memory is where the task's buffers are drawn from.
	Memory *memory.Task

	blockSize int // of records, in bytes; 0 for defaultBlockSize
	openFiles int // most map outputs open at once; 0 for defaultOpenFiles
}

const (
	// defaultBlockSize is how many bytes of records a block aims at. Two blocks
	// are the price of each run of a merge.
	defaultBlockSize = 128 << 10
	// defaultOpenFiles is the most map outputs that a merge has open at once.
	defaultOpenFiles = 256
	// maxPartitions is what an index entry can hold.
	maxPartitions = 1 << 24
)

func (c Config) block() int {
	if c.blockSize > 0 {
		return c.blockSize
	}
	return defaultBlockSize
}

func (c Config) files() int {
	if c.openFiles > 0 {
		return c.openFiles
	}
	return defaultOpenFiles
}

// check refuses what cannot work before any record is touched.
func (c Config) check(d abi.ShuffleDesc) error {
	if _, err := codecOf(c.Compression); err != nil {
		return fmt.Errorf("shuffle %d: %w", d.ID, err)
	}
	switch {
	case d.Partitions < 1 || d.Partitions > maxPartitions:
		return fmt.Errorf("shuffle %d: %d partitions: there may be 1 to %d", d.ID, d.Partitions, maxPartitions)
	case d.Partitioner < abi.PartitionHash || d.Partitioner > abi.PartitionGiven:
		return fmt.Errorf("shuffle %d: unknown partitioner %d", d.ID, d.Partitioner)
	case d.Partitioner == abi.PartitionRange && len(d.Bounds) >= d.Partitions:
		return fmt.Errorf("shuffle %d: %d bounds for %d partitions: there may be at most one less than partitions",
			d.ID, len(d.Bounds), d.Partitions)
	}
	return nil
}

// WriteMetrics is what a Writer did. Sizes are bytes.
type WriteMetrics struct {
	Records       int64
	Bytes         int64 // of the records, as they were written
	FileBytes     int64 // of the data file
	Spills        int   // runs spilled
	MemorySpilled int64 // of the records in spilled runs
	DiskSpilled   int64 // of spilled and intermediate runs in files
}

// ReadMetrics is what a Reader did so far. Sizes are bytes.
type ReadMetrics struct {
	Records     int64 // delivered
	Bytes       int64 // of the segments opened, compressed
	DiskSpilled int64 // of intermediate runs in files
}
