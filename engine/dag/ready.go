package dag

import (
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
)

// Ready is what the shell has to do, in the order of the fields. The slices are
// the scheduler's and are overwritten by the second call of Ready after this one;
// what their elements refer to stays valid.
type Ready struct {
	// Submit lists task sets to run.
	Submit []TaskSet
	// Cancel lists stage attempts that are not wanted any more.
	Cancel []Cancel
	// Done lists partitions that need not be computed any more, because an
	// earlier attempt of the stage has delivered them.
	Done []PartitionDone
	// Results are new results of jobs; each index of a job comes exactly once.
	Results []JobResult
	// Ended lists jobs that are over. No results of theirs come later.
	Ended []JobEnded
	// Release lists images that are not needed any more; each comes once.
	Release []msg.ImageID
	// Remove lists shuffles whose data are not needed any more; each comes once.
	Remove []msg.ShuffleID
	// Events are for listeners.
	Events []event.Event
}

// Empty says whether there is nothing to do.
func (r *Ready) Empty() bool {
	return len(r.Submit) == 0 && len(r.Cancel) == 0 && len(r.Done) == 0 && len(r.Results) == 0 &&
		len(r.Ended) == 0 && len(r.Release) == 0 && len(r.Remove) == 0 && len(r.Events) == 0
}

// reset empties the slices and lets go of what they referred to.
func (r *Ready) reset() {
	r.Submit = emptied(r.Submit)
	r.Cancel = emptied(r.Cancel)
	r.Done = emptied(r.Done)
	r.Results = emptied(r.Results)
	r.Ended = emptied(r.Ended)
	r.Release = emptied(r.Release)
	r.Remove = emptied(r.Remove)
	r.Events = emptied(r.Events)
}

func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// TaskSet asks for one attempt of a stage.
type TaskSet struct {
	Stage msg.Stage
	// Partitions of the stage's RDD to compute, at least one, each once, in the
	// order in which to start them. They are the receiver's.
	Partitions []int
	// Priority is the first job that needs the stage; smaller goes first.
	Priority msg.JobID
}

// Cancel drops an attempt of a stage and all attempts of it before that one:
// nothing of them is started any more, and running tasks are killed.
type Cancel struct {
	Stage  msg.StageAttempt
	Reason string
}

// PartitionDone drops one partition from an attempt of a stage.
type PartitionDone struct {
	Stage     msg.StageAttempt
	Partition int
}

// JobResult is the result of one partition of a job.
type JobResult struct {
	Job       msg.JobID
	Index     int // in Job.Partitions, or the partition if that is nil
	Partition int
	Task      msg.TaskID // the attempt whose result it is
	Executor  msg.ExecutorID
	Result    [][]byte        // the batches that the task wrote
	Output    *msg.SinkOutput // the file that the task wrote, if the job has a sink
}

// JobEnded ends a job.
type JobEnded struct {
	Job msg.JobID
	Err *JobError // nil if all results were delivered
}

// TaskEnd reports that a task attempt is over. It comes once for each attempt.
type TaskEnd struct {
	Stage     msg.StageAttempt
	Task      msg.TaskID
	Partition int
	Attempt   int // 0 for the first
	Executor  msg.ExecutorID
	State     msg.State       // a final one
	Result    [][]byte        // StateFinished of a result task
	MapOutput *msg.MapOutput  // StateFinished of a shuffle task, of this partition
	Output    *msg.SinkOutput // StateFinished of a result task of a job with a sink
	Failure   *msg.Failure    // else
	Metrics   msg.TaskMetrics
}

// TaskSetFailed reports that a stage attempt has been given up, because one of
// its partitions failed too often.
type TaskSetFailed struct {
	Stage     msg.StageAttempt
	Partition int
	Failures  int // those that count
	Failure   *msg.Failure
}
