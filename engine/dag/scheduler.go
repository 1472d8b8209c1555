package dag

import (
	"fmt"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
)

// Config is what a Scheduler needs to know beforehand.
type Config struct {
	// Seed is the application's. Stages' seeds are made of it.
	Seed uint64
	// MaxAttempts is how many attempts of a stage may fail in a row, at least 1.
	// Only attempts that failed to read their input count.
	MaxAttempts int
	// MaxResultSize is how many bytes the results of one job may have; 0 is no
	// limit.
	MaxResultSize int64
}

// Scheduler cuts jobs into stages. See the package comment for how to use it.
type Scheduler struct {
	cfg   Config
	graph *graph.Graph

	jobs map[msg.JobID]*job // those that are not over
	// stages by ID. A result stage is nil once its job is over.
	stages    []*stage
	byShuffle map[msg.ShuffleID]*stage
	// images counts the users of each image: jobs, and map stages that first ran
	// with it.
	images map[msg.ImageID]int
	// dropped are shuffles that the driver does not refer to, but running jobs may.
	dropped []msg.ShuffleID
	// lost holds the executors that are gone, so that reports of theirs which
	// were under way are not believed.
	lost map[msg.ExecutorID]struct{}

	out, spare *Ready
}

// New returns a scheduler of jobs over RDDs of g.
func New(cfg Config, g *graph.Graph) *Scheduler {
	cfg.MaxAttempts = max(cfg.MaxAttempts, 1)
	return &Scheduler{
		cfg:       cfg,
		graph:     g,
		jobs:      make(map[msg.JobID]*job),
		byShuffle: make(map[msg.ShuffleID]*stage),
		images:    make(map[msg.ImageID]int),
		lost:      make(map[msg.ExecutorID]struct{}),
		out:       new(Ready),
		spare:     new(Ready),
	}
}

// Ready returns what is to be done because of the calls since the last Ready.
func (d *Scheduler) Ready() *Ready {
	r := d.out
	d.spare.reset()
	d.out, d.spare = d.spare, r
	return r
}

// TaskEnded takes the report that a task attempt is over. Reports about stages
// that nobody needs any more are ignored, and so is a result or map output that
// is there already.
func (d *Scheduler) TaskEnded(end *TaskEnd) {
	if int(end.Stage.Stage) >= len(d.stages) {
		return
	}
	s := d.stages[end.Stage.Stage]
	if s == nil {
		return
	}
	switch {
	case end.State == msg.StateFinished && s.shuffle != nil:
		d.mapFinished(s, end)
	case end.State == msg.StateFinished:
		d.resultFinished(s, end)
	case end.Failure != nil && end.Failure.Kind == msg.FailFetch:
		d.fetchFailed(s, end)
	}
	// Other failures are retried by sched, or come as TaskSetFailed.
}

// TaskSetFailed takes the report that a stage attempt has been given up. All
// jobs that need the stage fail.
func (d *Scheduler) TaskSetFailed(f TaskSetFailed) {
	if int(f.Stage.Stage) >= len(d.stages) {
		return
	}
	s := d.stages[f.Stage.Stage]
	if s == nil || !s.isCurrent(f.Stage) {
		return
	}
	message := "unknown"
	if f.Failure != nil {
		message = f.Failure.Message
	}
	cause := fmt.Sprintf("%s partition %d failed: %s", d.nameStage(s), f.Partition, message)
	if f.Failures > 1 {
		cause = fmt.Sprintf("%s partition %d failed %d times; last: %s", d.nameStage(s), f.Partition, f.Failures, message)
	}
	d.stageEnded(s, message)
	d.abort(s, cause, f.Failure)
}

// ExecutorLost takes the report that an executor is gone, and with it all its
// map outputs. They are computed again when they are needed.
func (d *Scheduler) ExecutorLost(id msg.ExecutorID) {
	d.lost[id] = struct{}{}
	for _, s := range d.stages {
		if s == nil || s.shuffle == nil {
			continue
		}
		for i := range s.outputs {
			if s.have.has(i) && s.outputs[i].Executor == id {
				s.unregister(i)
			}
		}
	}
}

func (d *Scheduler) resultFinished(s *stage, end *TaskEnd) {
	j := s.job
	i, ok := j.index(end.Partition)
	if !ok || s.have.has(i) {
		return
	}
	for _, b := range end.Result {
		j.size += int64(len(b))
	}
	if limit := d.cfg.MaxResultSize; limit > 0 && j.size > limit {
		d.endJob(j, &JobError{Job: j.ID, Name: j.Name, CallSite: j.CallSite, Cause: tooLarge(j.size, limit)})
		return
	}
	s.have.add(i)
	s.missing--
	d.out.Results = append(d.out.Results, JobResult{
		Job: j.ID, Index: i, Partition: end.Partition, Task: end.Task, Executor: end.Executor,
		Result: end.Result, Output: end.Output,
	})
	d.settled(s, i, end)
	if s.missing == 0 {
		if s.state == running {
			d.stageEnded(s, "")
		}
		d.endJob(j, nil)
	}
}

func (d *Scheduler) mapFinished(s *stage, end *TaskEnd) {
	i := end.Partition
	if i < 0 || i >= len(s.outputs) || end.MapOutput == nil || s.have.has(i) {
		return
	}
	if _, gone := d.lost[end.MapOutput.Executor]; !gone {
		s.register(i, *end.MapOutput)
	} else if !s.isCurrent(end.Stage) {
		// The output is gone, and the current attempt has a task of its own for it.
		return
	}
	d.settled(s, i, end)
	switch {
	case s.state == running && s.pendingCount == 0:
		if s.missing == 0 {
			d.stageEnded(s, "")
			d.mapStageDone(s)
			return
		}
		d.stageEnded(s, fmt.Sprintf("%d map outputs were lost with their executors", s.missing))
		d.ensure(s)
	case s.state == waiting && s.missing == 0:
		// Tasks of an attempt that has failed have delivered the rest.
		d.stopWaiting(s)
		d.mapStageDone(s)
	}
}

// settled notes that the current attempt need not wait for partition i (of the
// stage's order) any more, because end has come.
func (d *Scheduler) settled(s *stage, i int, end *TaskEnd) {
	if s.state != running || !s.pending.has(i) {
		return
	}
	s.pending.remove(i)
	s.pendingCount--
	if !s.isCurrent(end.Stage) {
		d.out.Done = append(d.out.Done, PartitionDone{Stage: s.current(), Partition: end.Partition})
	}
}

// mapStageDone goes on with the stages that wait for a map stage which has all
// its outputs.
func (d *Scheduler) mapStageDone(s *stage) {
	s.failed = 0
	if s.leftovers {
		d.cancelTasks(s, "the stage has completed")
	}
	waiters := s.waiters
	s.waiters = nil
	for _, w := range waiters {
		if w.awaited--; w.awaited == 0 {
			w.state = idle
			d.ensure(w)
		}
	}
}

// fetchFailed marks the map output lost that a task could not read, and starts
// over with what is missing.
func (d *Scheduler) fetchFailed(s *stage, end *TaskEnd) {
	if f := end.Failure.Fetch; f != nil {
		// If it has been computed again since, the report is about the old one.
		p := d.byShuffle[f.Shuffle]
		if p != nil && f.Map >= 0 && f.Map < len(p.outputs) && p.have.has(f.Map) && p.outputs[f.Map].Task == f.Task {
			p.unregister(f.Map)
		}
	}
	if !s.isCurrent(end.Stage) {
		return // the attempt has failed before
	}
	d.stageEnded(s, end.Failure.Message)
	s.leftovers = true
	s.failed++
	if s.failed >= d.cfg.MaxAttempts {
		d.abort(s, fmt.Sprintf("%s could not read its input in %d attempts in a row; last: %s",
			d.nameStage(s), s.failed, end.Failure.Message), end.Failure)
		return
	}
	d.ensure(s)
}

// abort fails all jobs that need the stage.
func (d *Scheduler) abort(s *stage, cause string, failure *msg.Failure) {
	s.failed = 0
	for len(s.jobs) > 0 {
		j := s.jobs[0]
		d.endJob(j, &JobError{Job: j.ID, Name: j.Name, CallSite: j.CallSite, Cause: cause, Failure: failure})
	}
}

// stageEnded ends the stage's current attempt. why is empty if the stage has
// all its output.
func (d *Scheduler) stageEnded(s *stage, why string) {
	s.state = idle
	s.pending, s.pendingCount = nil, 0
	d.out.Events = append(d.out.Events, event.StageCompleted{Stage: s.current(), Job: s.submittedFor, Error: oneLine(why)})
}

// cancelTasks drops what is left of all the stage's attempts up to now.
func (d *Scheduler) cancelTasks(s *stage, reason string) {
	s.leftovers = false
	d.out.Cancel = append(d.out.Cancel, Cancel{Stage: s.current(), Reason: reason})
}
