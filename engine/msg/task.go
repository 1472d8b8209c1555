package msg

import "github.com/quern-project/quern/sdk/abi"

// Launch starts tasks of one stage attempt on one executor.
type Launch struct {
	Stage Stage  `cbor:"1,keyasint"`
	Tasks []Task `cbor:"2,keyasint"`
}

// Stage is what all tasks of a stage attempt share.
type Stage struct {
	ID    StageAttempt `cbor:"1,keyasint"`
	Job   JobID        `cbor:"2,keyasint"`
	Image ImageID      `cbor:"3,keyasint"`
	// Kind and Target are the task entry's first two arguments: Target is the
	// action (TaskResult) or the shuffle (TaskShuffle).
	Kind   abi.TaskKind `cbor:"4,keyasint"`
	Target uint32       `cbor:"5,keyasint"`
	RDD    RDDID        `cbor:"6,keyasint"` // the stage's last RDD
	Name   string       `cbor:"7,keyasint,omitempty"`
	// CallSite is the user's file:line of the stage's last RDD or action.
	CallSite string `cbor:"8,keyasint,omitempty"`
	// Seed is equal for all attempts of the stage and the same in every run with
	// the same application seed; a task's seed is made of it and the partition.
	Seed uint64 `cbor:"9,keyasint"`
	// Shuffle is the shuffle that is written; nil for TaskResult.
	Shuffle *abi.ShuffleDesc `cbor:"10,keyasint,omitempty"`
	// Reads are the shuffles that tasks of the stage may read.
	Reads []abi.ShuffleDesc `cbor:"11,keyasint,omitempty"`
	// Sink is where PortSink writes, nil if the action has none.
	Sink *Sink `cbor:"12,keyasint,omitempty"`
}

// Task is one attempt at one partition.
type Task struct {
	ID        TaskID `cbor:"1,keyasint"`
	Partition int    `cbor:"2,keyasint"` // of the stage's RDD
	Attempt   int    `cbor:"3,keyasint"` // 0 for the first
	// Text lists the source partitions that the task may read.
	Text []TextInput `cbor:"4,keyasint,omitempty"`
}

// TextInput is one partition of a text RDD: pieces of files, read in order.
type TextInput struct {
	RDD       RDDID   `cbor:"1,keyasint"`
	Partition int     `cbor:"2,keyasint"`
	Pieces    []Piece `cbor:"3,keyasint"`
}

// Piece is a range of one file. A line belongs to the piece in which its first
// byte lies. Compressed files are one piece, whatever their length.
type Piece struct {
	Path   string `cbor:"1,keyasint"` // absolute
	Offset int64  `cbor:"2,keyasint"`
	Length int64  `cbor:"3,keyasint"`
}

// Sink is the output of a SaveAsTextFile.
type Sink struct {
	Path        string `cbor:"1,keyasint"`           // absolute, the final folder
	Compression string `cbor:"2,keyasint,omitempty"` // "", "gzip" or "zstd"
	Job         JobID  `cbor:"3,keyasint"`           // part of the attempt folders' name
}

// RemoveShuffles tells an executor that the data of shuffles are not needed any
// more.
type RemoveShuffles struct {
	Shuffles []ShuffleID `cbor:"1,keyasint"`
}

// Kill asks an executor to stop tasks. A task that has really stopped is
// reported as StateKilled.
type Kill struct {
	Tasks  []TaskID `cbor:"1,keyasint"`
	Reason string   `cbor:"2,keyasint"`
}
