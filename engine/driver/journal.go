package driver

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
)

// journal is the listener that writes to the log: for whoever wants details,
// what happens, and for all, failures that are tried again, because nothing else
// tells of them when the job succeeds in the end.
type journal struct {
	log         *slog.Logger
	maxFailures int
}

// withJournal adds the journal to listeners if it would have anything to say.
func withJournal(listeners []event.Listener, log *slog.Logger, maxFailures int) []event.Listener {
	if maxFailures == 1 && !log.Enabled(context.Background(), slog.LevelDebug) {
		return listeners
	}
	return append(slices.Clip(listeners), journal{log, maxFailures})
}

// On implements event.Listener.
func (j journal) On(e event.Event) {
	switch e := e.(type) {
	case event.JobStarted:
		run := 0
		for _, s := range e.Stages {
			if !s.Skipped {
				run++
			}
		}
		j.log.Debug("job started", "job", e.Job, "action", e.Name, "at", e.CallSite, "stages", run, "skipped", len(e.Stages)-run)
	case event.JobEnded:
		j.ended("job", e.Error, "job", e.Job)
	case event.StageSubmitted:
		j.log.Debug("stage started", "stage", e.Stage, "job", e.Job, "name", e.Name, "at", e.CallSite, "tasks", e.Tasks)
	case event.StageCompleted:
		j.ended("stage", e.Error, "stage", e.Stage, "job", e.Job)
	case event.TaskEnded:
		j.taskEnded(e)
	}
}

func (j journal) ended(what, cause string, attrs ...any) {
	if cause == "" {
		j.log.Debug(what+" finished", attrs...)
	} else {
		j.log.Debug(what+" failed", append(attrs, "cause", cause)...)
	}
}

func (j journal) taskEnded(e event.TaskEnded) {
	attrs := []any{"stage", e.Stage, "partition", e.Partition, "attempt", e.Attempt + 1, "executor", e.Executor}
	if e.Failure != nil {
		attrs = append(attrs, "cause", e.Failure.Message)
	}
	switch {
	case e.State == msg.StateFinished:
		j.log.Debug("task finished", append(attrs, "took", time.Duration(e.Metrics.RunNanos), "memory", e.Metrics.PeakMemory)...)
	case e.State == msg.StateFailed && e.Attempt+1 < j.maxFailures:
		j.log.Warn("task failed and is tried again", attrs...)
	default:
		j.log.Debug("task "+e.State.String(), attrs...)
	}
}
