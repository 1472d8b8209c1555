package msg

import "fmt"

// State is how far a task attempt is. States are ordered: a larger one is
// later, and the last three are final.
type State uint8

const (
	StateLaunched State = iota
	StateRunning
	StateFinished
	StateFailed
	StateKilled
)

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

var stateNames = [...]string{"launched", "running", "finished", "failed", "killed"}

// Final says whether the attempt is over.
func (s State) Final() bool { return s >= StateFinished }

// StatusUpdate reports one task attempt.
type StatusUpdate struct {
	Executor ExecutorID   `cbor:"1,keyasint"`
	Task     TaskID       `cbor:"2,keyasint"`
	Stage    StageAttempt `cbor:"3,keyasint"`
	State    State        `cbor:"4,keyasint"`
	// Result holds the batches written to PortResult, in order (StateFinished).
	Result [][]byte `cbor:"5,keyasint,omitempty"`
	// MapOutput is set by a finished TaskShuffle.
	MapOutput *MapOutput `cbor:"6,keyasint,omitempty"`
	// Failure is set by StateFailed and StateKilled.
	Failure *Failure    `cbor:"7,keyasint,omitempty"`
	Metrics TaskMetrics `cbor:"8,keyasint"`
	// Output is set by a finished TaskResult of a stage with a sink.
	Output *SinkOutput `cbor:"9,keyasint,omitempty"`
}

// SinkOutput is the file that one finished attempt wrote. It becomes part of
// the job's output only when the driver accepts it and commits the job; the
// driver accepts one a partition.
type SinkOutput struct {
	Partition int    `cbor:"1,keyasint"`
	Path      string `cbor:"2,keyasint"` // below the sink's _temporary folder
	Bytes     int64  `cbor:"3,keyasint"` // of the file, so compressed
}

// MapOutput says where one map task's output lies. It does not list the sizes
// per reducer: those stay with the data, so that the driver's memory does not
// grow with maps times reducers.
type MapOutput struct {
	Executor ExecutorID `cbor:"1,keyasint"`
	Shuffle  ShuffleID  `cbor:"2,keyasint"`
	Map      int        `cbor:"3,keyasint"` // the map partition
	Task     TaskID     `cbor:"4,keyasint"` // the attempt that wrote it
	// Path is the data file on the executor's machine.
	Path    string `cbor:"5,keyasint"`
	Bytes   int64  `cbor:"6,keyasint"` // compressed
	Records int64  `cbor:"7,keyasint"`
}

// MapOutputsRequest asks the driver where a shuffle's outputs lie.
type MapOutputsRequest struct {
	Shuffle ShuffleID `cbor:"1,keyasint"`
}

// MapOutputsReply lists them by map partition, each once, ascending.
type MapOutputsReply struct {
	Outputs []MapOutput `cbor:"1,keyasint"`
}

// FailureKind says what a failure means to the scheduler.
type FailureKind uint8

const (
	// FailUser: the job's own fault (panic, error, bad data); counts.
	FailUser FailureKind = iota + 1
	// FailMemory: over the task's memory limit; counts.
	FailMemory
	// FailIO: reading input or writing output failed (full disk); counts.
	FailIO
	// FailFetch: a map output could not be read; reruns the map stage and does
	// not count as the task's.
	FailFetch
	// FailKilled: killed on request; does not count.
	FailKilled
	// FailExecutorLost: the executor is gone; does not count.
	FailExecutorLost
	// FailInternal: a fault of the engine; counts.
	FailInternal
)

func (k FailureKind) String() string {
	if k >= 1 && int(k) <= len(failureNames) {
		return failureNames[k-1]
	}
	return fmt.Sprintf("failure(%d)", uint8(k))
}

var failureNames = [...]string{
	"user code", "memory", "input/output", "fetch", "killed", "executor lost", "internal",
}

// Counts says whether the failure counts towards task.maxFailures.
func (k FailureKind) Counts() bool {
	switch k {
	case FailFetch, FailKilled, FailExecutorLost:
		return false
	}
	return true
}

// Failure is why a task attempt did not finish.
type Failure struct {
	Kind    FailureKind `cbor:"1,keyasint"`
	Message string      `cbor:"2,keyasint"`           // one line: what, where, why, what to do
	Stack   string      `cbor:"3,keyasint,omitempty"` // the guest's, if there is one
	Fetch   *FetchLost  `cbor:"4,keyasint,omitempty"` // FailFetch
}

func (f *Failure) Error() string { return f.Message }

// FetchLost names the map output that could not be read.
type FetchLost struct {
	Executor ExecutorID `cbor:"1,keyasint"`
	Shuffle  ShuffleID  `cbor:"2,keyasint"`
	Map      int        `cbor:"3,keyasint"`
	Task     TaskID     `cbor:"4,keyasint"` // the attempt whose output it was
}

// TaskMetrics is what one attempt used. Times are nanoseconds, sizes bytes.
type TaskMetrics struct {
	RunNanos        int64 `cbor:"1,keyasint,omitempty"`
	Safepoints      int64 `cbor:"2,keyasint,omitempty"`
	PeakMemory      int64 `cbor:"3,keyasint,omitempty"` // linear memory and host buffers
	InputBytes      int64 `cbor:"4,keyasint,omitempty"`
	InputRecords    int64 `cbor:"5,keyasint,omitempty"`
	OutputBytes     int64 `cbor:"6,keyasint,omitempty"`
	ShuffleRead     int64 `cbor:"7,keyasint,omitempty"` // compressed
	ShuffleWritten  int64 `cbor:"8,keyasint,omitempty"` // compressed
	ShuffleRecords  int64 `cbor:"9,keyasint,omitempty"` // written
	MemorySpilled   int64 `cbor:"10,keyasint,omitempty"`
	DiskSpilled     int64 `cbor:"11,keyasint,omitempty"`
	ResultBytes     int64 `cbor:"12,keyasint,omitempty"`
	FetchWaitNanos  int64 `cbor:"13,keyasint,omitempty"`
	ShuffleReadRecs int64 `cbor:"14,keyasint,omitempty"`
}
