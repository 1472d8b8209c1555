// Package shuffle moves records from map tasks to reduce tasks through files.
//
// A map task has one [Writer]. It takes batches of records, finds each record's
// partition, collects records in memory, spills sorted runs when the task's
// memory is refused, and at the end merges all into one data file. A reduce
// task has one [Reader] for each shuffle it reads, which finds its partition's
// segment in every map output and delivers them merged (sorted shuffles) or one
// after the other. Both draw their buffers from the task's memory, and both
// work in bounded memory, whatever the amount of data.
//
// The order of what a Reader delivers depends on the records alone, never on
// how much memory there was, how often was spilled, or in which rounds was
// merged: see abi.ShuffleDesc.
//
// # Where what is
//
// On the way in: writer.go, arena.go (records in memory and their index),
// partition.go, sort.go, commit.go. On the way out: reader.go, index.go (finding a
// segment). Shared: record.go, block.go (the unit of compression and checksum),
// blockwriter.go, run.go (reading a sequence of blocks), merge.go (merging
// runs), rounds.go (merging more runs than memory allows at once).
//
// # Files
//
// A data file is
//
//	{ segment } directory trailer
//
// with one segment for each partition that has records, ascending. A segment is
// a sequence of blocks, of whole records each. After every 512 segments, and
// after the last, follows a page that lists their lengths. The directory lists
// the pages. So a reader finds its segment with two or three reads, whatever
// the number of partitions, and a partition without records costs nothing.
// Every byte is covered by a checksum. Numbers are little-endian.
//
// A spilled run is a sequence of blocks alone, in the order of partitions.
package shuffle
