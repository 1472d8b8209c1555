// Package event is what happened in an application, told in order to whoever
// listens: the progress bar, the event log, a page. An event is a value of one
// of the types in this file; a [Listener] switches on the type:
//
//	func (p *progress) On(e event.Event) {
//		switch e := e.(type) {
//		case event.StageSubmitted:
//			...
//		}
//	}
//
// A [Bus] stands between the engine and its listeners, so that a slow or broken
// listener does no harm to the engine.
package event

import (
	"time"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Event is one thing that happened: a value of one of this package's types. Its
// Time is when the bus was told.
type Event interface {
	// stamped returns the event with its time set.
	stamped(time.Time) Event
	// perTask tells the many events (one task) from the few.
	perTask() bool
}

// Listener is told what happened. On is called by one goroutine at a time, in
// order. What an event refers to is shared and must not be changed.
type Listener interface {
	On(Event)
}

// ListenerFunc is a function that listens.
type ListenerFunc func(Event)

// On calls f.
func (f ListenerFunc) On(e Event) { f(e) }

// JobStarted: an action was called.
type JobStarted struct {
	Time     time.Time
	Job      msg.JobID
	Name     string // the action, such as "count"
	CallSite string // the user's file:line
	// Stages are those that the job will run and those it skips because their
	// output is there already, parents before children, the last one the result
	// stage. Stages behind a skipped one are not listed.
	Stages []Stage
}

// Stage describes a stage of a job.
type Stage struct {
	ID       msg.StageID
	Kind     abi.TaskKind
	Name     string // of its last RDD, or the action
	CallSite string
	Tasks    int  // partitions that were still to be computed when the job started
	Skipped  bool // the output was there already
}

// JobEnded: all results are there, or the job has failed or was cancelled.
type JobEnded struct {
	Time      time.Time
	Job       msg.JobID
	Error     string // one line; empty if the job succeeded
	Cancelled bool
}

// StageSubmitted: a stage attempt has begun.
type StageSubmitted struct {
	Time     time.Time
	Stage    msg.StageAttempt
	Job      msg.JobID // the first that needs it
	Kind     abi.TaskKind
	Name     string
	CallSite string
	Tasks    int // of this attempt
}

// StageCompleted: a stage attempt is over. Tasks of it may still end later, if
// it failed.
type StageCompleted struct {
	Time  time.Time
	Stage msg.StageAttempt
	Job   msg.JobID
	Error string // one line; empty if all its output is there
}

// TaskStarted: a task attempt was given to an executor.
type TaskStarted struct {
	Time      time.Time
	Stage     msg.StageAttempt
	Task      msg.TaskID
	Partition int
	Attempt   int // 0 for the first
	Executor  msg.ExecutorID
}

// TaskEnded: a task attempt has stopped, or its executor is lost.
type TaskEnded struct {
	Time      time.Time
	Stage     msg.StageAttempt
	Task      msg.TaskID
	Partition int
	Attempt   int
	Executor  msg.ExecutorID
	State     msg.State    // a final one
	Failure   *msg.Failure // nil if the state is StateFinished
	Metrics   msg.TaskMetrics
}

// ExecutorAdded: an executor offers its slots.
type ExecutorAdded struct {
	Time     time.Time
	Executor msg.ExecutorID
	Slots    int
}

// ExecutorRemoved: an executor is gone.
type ExecutorRemoved struct {
	Time     time.Time
	Executor msg.ExecutorID
	Reason   string
}

func (e JobStarted) stamped(t time.Time) Event      { e.Time = t; return e }
func (e JobEnded) stamped(t time.Time) Event        { e.Time = t; return e }
func (e StageSubmitted) stamped(t time.Time) Event  { e.Time = t; return e }
func (e StageCompleted) stamped(t time.Time) Event  { e.Time = t; return e }
func (e TaskStarted) stamped(t time.Time) Event     { e.Time = t; return e }
func (e TaskEnded) stamped(t time.Time) Event       { e.Time = t; return e }
func (e ExecutorAdded) stamped(t time.Time) Event   { e.Time = t; return e }
func (e ExecutorRemoved) stamped(t time.Time) Event { e.Time = t; return e }

func (JobStarted) perTask() bool      { return false }
func (JobEnded) perTask() bool        { return false }
func (StageSubmitted) perTask() bool  { return false }
func (StageCompleted) perTask() bool  { return false }
func (TaskStarted) perTask() bool     { return true }
func (TaskEnded) perTask() bool       { return true }
func (ExecutorAdded) perTask() bool   { return false }
func (ExecutorRemoved) perTask() bool { return false }
