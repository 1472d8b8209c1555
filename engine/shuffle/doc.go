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
package shuffle
