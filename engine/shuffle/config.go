package shuffle

import (
	"github.com/quern-project/quern/engine/memory"
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
}

// WriteMetrics is what a Writer did. Sizes are bytes.
type WriteMetrics struct {
	Records       int64
	Bytes         int64 // of the records, as they were written
	FileBytes     int64 // of the data file, compressed
	Spills        int   // runs spilled
	MemorySpilled int64 // bytes of the records that were spilled
	DiskSpilled   int64 // bytes of spilled runs, compressed
}

// ReadMetrics is what a Reader did so far. Sizes are bytes.
type ReadMetrics struct {
	Records     int64 // delivered
	Bytes       int64 // read from map outputs, compressed
	DiskSpilled int64 // written in merge rounds, compressed
}
