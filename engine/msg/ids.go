// Package msg holds what driver and executors say to each other, and the
// identifiers in it. It is a leaf: data only, no behaviour beyond printing, so
// that every other package of the engine can speak it. All of it encodes as
// CBOR (see net/wire); in one process the values are passed as they are.
//
// The driver sends Launch and Kill; an executor answers with StatusUpdate and
// asks for MapOutputs. Nothing else passes between them but blocks and images,
// which are bytes.
package msg

import "fmt"

type (
	// JobID numbers the actions of an application from 0.
	JobID uint32
	// StageID numbers the stages of an application from 0.
	StageID uint32
	// TaskID numbers task attempts of an application from 0; it is never used twice.
	TaskID uint64
	// RDDID is the guest's number of an RDD, from 1.
	RDDID uint32
	// ShuffleID is the guest's number of a shuffle, from 1.
	ShuffleID uint32
	// ImageID numbers the captured images of an application from 1.
	ImageID uint64
	// ExecutorID names an executor within its application.
	ExecutorID string
)

// StageAttempt is one submission of a stage. Attempts count from 0.
type StageAttempt struct {
	Stage   StageID `cbor:"1,keyasint"`
	Attempt int     `cbor:"2,keyasint"`
}

func (s StageAttempt) String() string { return fmt.Sprintf("%d.%d", s.Stage, s.Attempt) }
