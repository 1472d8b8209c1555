// Package abi is the contract between a job module and the engine: names of
// imports and exports, numbers of operations, shapes of descriptors. Guest and
// host compile the same package, so neither can drift from the other. It
// imports the standard library alone, so that a job builds without a network.
//
// docs/abi.md is the same contract in prose, for SDKs in other languages.
package abi

// Version is the version of the contract. It is part of the name of the
// module's task entry, so that both sides notice a mismatch before any work.
const Version = 1

const (
	// Module is the name that the engine's host functions are imported from.
	Module = "quern"
	// WASI is the only other module a job may import from.
	WASI = "wasi_snapshot_preview1"
	// TaskExportPrefix plus the decimal version is the task entry's name.
	TaskExportPrefix = "quern_task_"
	// TaskExport is the task entry of this version:
	//	(kind i32, id i32, partition i32) -> i64
	// kind is a TaskKind; id is the action or the shuffle; the result is 0 when
	// the task is done, else a negative Code (the text was given to task_fail).
	TaskExport = "quern_task_1"
	// StartExport is the driver's entry, of type () -> ().
	StartExport = "_start"
	// YieldImport is the safepoint's host function, of type () -> (). Every
	// module imports it; the host inserts the calls.
	YieldImport = "yield"
)

// Names of the host functions. Pointers, lengths, ports and identifiers are
// i32, results are i64: what is >= 0 is a result, what is < 0 is a Code.
const (
	// In the driver.
	FnContextOpen = "context_open" // (ptr, len) CBOR ContextDesc -> 0
	FnConfGet     = "conf_get"     // (kptr, klen, ptr, cap) -> length of the value
	FnRDDDefine   = "rdd_define"   // (ptr, len) CBOR RDDDesc -> number of partitions
	FnJobRun      = "job_run"      // (ptr, len) CBOR JobDesc -> job
	FnJobNext     = "job_next"     // (job, ptr, cap) -> length of the next results, 0 at the end
	FnJobClose    = "job_close"    // (job) -> 0

	// In a task.
	FnTaskInfo  = "task_info"  // (ptr, cap) -> length; TaskInfoWords u64 little-endian
	FnPortOpen  = "port_open"  // (kind, id, partition) -> port
	FnPortRead  = "port_read"  // (port, ptr, cap) -> length of the next batch, 0 at the end
	FnPortWrite = "port_write" // (port, ptr, len) -> 0
	FnPortClose = "port_close" // (port) -> 0; a write port is complete only when closed
	FnTaskFail  = "task_fail"  // (code, ptr, len) -> 0; text of the failure, at most once

	// In both.
	FnLastError = "last_error" // (ptr, cap) -> length of the text of the last negative result
	FnLog       = "log"        // (level, ptr, len) -> 0
)

// Code is a negative result of a host function or of the task entry.
type Code int64

const (
	// ErrFailed: the operation failed; last_error says why.
	ErrFailed Code = -1
	// ErrNotFound: no such key.
	ErrNotFound Code = -2
	// ErrInTask: a driver call was made inside a task.
	ErrInTask Code = -3
	// ErrInDriver: a task call was made in the driver.
	ErrInDriver Code = -4
	// ErrBadArgument: a pointer outside memory, an unknown port, a descriptor
	// that does not decode; last_error says which.
	ErrBadArgument Code = -5
	// ErrCancelled: the job was cancelled.
	ErrCancelled Code = -6
	// ErrPanic is what the task entry answers when user code panicked.
	ErrPanic Code = -7
	// ErrUser is what the task entry answers when user code returned an error.
	ErrUser Code = -8
	// ErrVersion: the two sides speak different versions.
	ErrVersion Code = -9
)

// TaskKind says what a task's output is for.
type TaskKind uint32

const (
	// TaskResult runs the action's closure over one partition of its RDD.
	TaskResult TaskKind = 0
	// TaskShuffle writes one partition of a shuffle's parent to the shuffle.
	TaskShuffle TaskKind = 1
)

// PortKind says what a port is connected to.
type PortKind uint32

const (
	// PortText reads lines of a text RDD's partition. id is the RDD. A batch is
	// a sequence of records: uvarint length, then the line without its end.
	PortText PortKind = 1
	// PortShuffleRead reads one partition of a shuffle. id is the shuffle. A
	// batch is a sequence of records: uvarint key length, uvarint value length,
	// key, value. Order: see ShuffleDesc.Sorted. A record never straddles
	// batches.
	PortShuffleRead PortKind = 2
	// PortResult writes what the action's driver receives, opaque to the host.
	// A record must not straddle batches. id is the action.
	PortResult PortKind = 16
	// PortShuffleWrite writes records, in the form of PortShuffleRead, for the
	// host to partition. id is the shuffle. A record must not straddle batches.
	PortShuffleWrite PortKind = 17
	// PortSink writes bytes to the task's output file, as they are. id is the
	// action.
	PortSink PortKind = 18
)

// BatchSize is the length in bytes that batches aim at. A batch is longer only
// when a single record is.
const BatchSize = 64 << 10

// MaxRecord is the largest length in bytes of one record.
const MaxRecord = 1 << 30

// MaxDescriptor is the largest length in bytes of one descriptor.
const MaxDescriptor = 64 << 20

// Words of task_info, each a u64 little-endian. Later versions append.
const (
	InfoJob = iota
	InfoStage
	InfoStageAttempt
	InfoPartition
	InfoAttempt // 0 for the first
	InfoSeed    // equal for every attempt of (job's ordinal, stage's ordinal, partition)
	InfoMemory  // how many bytes of linear memory the task can count on
	TaskInfoWords
)

// Levels of log.
const (
	LogDebug = 0
	LogInfo  = 1
	LogWarn  = 2
	LogError = 3
)
