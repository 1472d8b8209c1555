package driver

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/units"
)

// logListener is the listener that writes to the log: for whoever wants details,
// what happens, and for all, failures that are tried again, because nothing else
// tells of them when the job succeeds in the end.
type logListener struct {
	log         *slog.Logger
	maxFailures int
	jobs        map[msg.JobID]*account // those that run
	stages      map[msg.StageID]*account
}

// account is what a job has cost.
type account struct {
	started          time.Time
	action, callSite string
	stages           int // attempts
	tasks, failures  int // attempts, and how many of them have failed
	metrics          msg.TaskMetrics
}

// withLogListener adds the log listener to listeners if it would have anything to say.
func withLogListener(listeners []event.Listener, log *slog.Logger, maxFailures int) []event.Listener {
	if maxFailures == 1 && !log.Enabled(context.Background(), slog.LevelDebug) {
		return listeners
	}
	return append(slices.Clip(listeners), &logListener{
		log: log, maxFailures: maxFailures,
		jobs: make(map[msg.JobID]*account), stages: make(map[msg.StageID]*account),
	})
}

// On implements event.Listener.
func (l *logListener) On(e event.Event) {
	switch e := e.(type) {
	case event.JobStarted:
		run := 0
		for _, s := range e.Stages {
			if !s.Skipped {
				run++
			}
		}
		l.jobs[e.Job] = &account{started: e.Time, action: e.Name, callSite: e.CallSite}
		l.log.Debug("job started", "job", e.Job, "action", e.Name, "at", e.CallSite, "stages", run, "skipped", len(e.Stages)-run)
	case event.JobEnded:
		l.jobEnded(e)
	case event.StageSubmitted:
		if a := l.jobs[e.Job]; a != nil {
			a.stages++
			l.stages[e.Stage.Stage] = a
		}
		l.log.Debug("stage started", "stage", e.Stage, "job", e.Job, "name", e.Name, "at", e.CallSite, "tasks", e.Tasks)
	case event.StageCompleted:
		l.ended("stage", e.Error, "stage", e.Stage, "job", e.Job)
	case event.TaskEnded:
		l.taskEnded(e)
	}
}

func (l *logListener) ended(what, cause string, attrs ...any) {
	if cause == "" {
		l.log.Debug(what+" finished", attrs...)
	} else {
		l.log.Debug(what+" failed", append(attrs, "cause", cause)...)
	}
}

// jobEnded sums up what the job has done.
func (l *logListener) jobEnded(e event.JobEnded) {
	attrs := []any{"job", e.Job}
	if a := l.jobs[e.Job]; a != nil {
		delete(l.jobs, e.Job)
		for id, of := range l.stages {
			if of == a {
				delete(l.stages, id)
			}
		}
		attrs = append(attrs, "action", a.action, "at", a.callSite, "took", e.Time.Sub(a.started),
			"stages", a.stages, "tasks", a.tasks, "failures", a.failures)
		m := a.metrics
		if m.InputRecords > 0 {
			attrs = append(attrs, "records", m.InputRecords)
		}
		for _, used := range []struct {
			what  string
			bytes int64
		}{
			{"read", m.InputBytes}, {"shuffled", m.ShuffleWritten}, {"spilled", m.DiskSpilled}, {"saved", m.OutputBytes},
			{"results", m.ResultBytes},
		} {
			if used.bytes > 0 {
				attrs = append(attrs, used.what, size(used.bytes))
			}
		}
	}
	l.ended("job", e.Error, attrs...)
}

func (l *logListener) taskEnded(e event.TaskEnded) {
	if a := l.stages[e.Stage.Stage]; a != nil {
		a.add(e)
	}
	attrs := []any{"stage", e.Stage, "partition", e.Partition, "attempt", e.Attempt + 1, "executor", e.Executor}
	if e.Failure != nil {
		attrs = append(attrs, "cause", e.Failure.Message)
	}
	switch {
	case e.State == msg.StateFinished:
		l.log.Debug("task finished", append(attrs, "took", time.Duration(e.Metrics.RunNanos), "memory", size(e.Metrics.PeakMemory))...)
	case e.State == msg.StateFailed && e.Attempt+1 < l.maxFailures:
		l.log.Warn("task failed and is tried again", attrs...)
	default:
		l.log.Debug("task "+e.State.String(), attrs...)
	}
}

// add counts a task attempt.
func (a *account) add(e event.TaskEnded) {
	a.tasks++
	if e.State == msg.StateFailed {
		a.failures++
	}
	a.metrics.InputRecords += e.Metrics.InputRecords
	a.metrics.InputBytes += e.Metrics.InputBytes
	a.metrics.ShuffleWritten += e.Metrics.ShuffleWritten
	a.metrics.DiskSpilled += e.Metrics.DiskSpilled
	a.metrics.OutputBytes += e.Metrics.OutputBytes
	a.metrics.ResultBytes += e.Metrics.ResultBytes
}

// size is a number of bytes that is logged as one word.
type size int64

// LogValue implements slog.LogValuer.
func (s size) LogValue() slog.Value {
	return slog.StringValue(strings.ReplaceAll(units.Bytes(s), " ", ""))
}
