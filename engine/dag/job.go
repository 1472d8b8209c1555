package dag

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
)

// Job is one call of an action.
type Job struct {
	ID       msg.JobID // not used before; the job's ordinal in the application
	RDD      msg.RDDID
	Action   uint32 // the task entry's id
	Name     string // the action, such as "count"
	CallSite string // the user's file:line
	// Partitions of the RDD to run, each once, in the order in which results are
	// wanted; nil for all, ascending. The scheduler keeps the slice.
	Partitions []int
	// Image is what the job's tasks run on.
	Image msg.ImageID
	// Sink is where the action writes, nil if nowhere.
	Sink *msg.Sink
}

// job is a job that is not over.
type job struct {
	Job
	count  int         // of results
	size   int64       // of all results so far, in bytes
	places map[int]int // from partition to index; nil if they are the same
	result *stage
	stages []*stage // that have the job among their jobs
}

// index returns the place of a partition's result in the job's order.
func (j *job) index(partition int) (int, bool) {
	if j.places != nil {
		i, ok := j.places[partition]
		return i, ok
	}
	return partition, partition >= 0 && partition < j.count
}

// SubmitJob starts a job. If it returns an error, nothing has been started, and
// the job's image is not kept.
func (d *Scheduler) SubmitJob(spec Job) error {
	j := &job{Job: spec}
	if err := d.checkJob(j); err != nil {
		return fmt.Errorf("submit job %d%s: %w", j.ID, where(j.Name, j.CallSite), err)
	}
	d.jobs[j.ID] = j
	d.images[j.Image]++
	j.result = d.newStages(j)
	d.need(j.result, j)
	d.out.Events = append(d.out.Events, event.JobStarted{
		Job: j.ID, Name: j.Name, CallSite: j.CallSite, Stages: j.describe(),
	})
	if j.count == 0 {
		d.endJob(j, nil)
		return nil
	}
	d.ensure(j.result)
	return nil
}

func (d *Scheduler) checkJob(j *job) error {
	n, ok := d.graph.NumPartitions(j.RDD)
	switch {
	case d.jobs[j.ID] != nil:
		return fmt.Errorf("the number is taken by a running job%s", where(d.jobs[j.ID].Name, d.jobs[j.ID].CallSite))
	case !ok:
		return fmt.Errorf("there is no RDD %d", j.RDD)
	}
	j.count = n
	if j.Partitions == nil {
		return nil
	}
	j.count = len(j.Partitions)
	j.places = make(map[int]int, j.count)
	for i, p := range j.Partitions {
		if p < 0 || p >= n {
			return fmt.Errorf("partition %d is asked for, but RDD %d has partitions 0 to %d", p, j.RDD, n-1)
		}
		if _, twice := j.places[p]; twice {
			return fmt.Errorf("partition %d of RDD %d is asked for twice", p, j.RDD)
		}
		j.places[p] = i
	}
	return nil
}

// describe lists the job's stages for listeners: those it needs, and those whose
// output is there and that are read by them.
func (j *job) describe() []event.Stage {
	var list []event.Stage
	skipped := make(map[*stage]struct{})
	describe := func(s *stage) {
		list = append(list, event.Stage{
			ID: s.id, Kind: s.desc.Kind, Name: s.desc.Name, CallSite: s.desc.CallSite,
			Tasks: s.missing, Skipped: s.shuffle != nil && s.missing == 0,
		})
	}
	for _, s := range j.stages {
		describe(s)
		for _, p := range s.parents {
			if _, ok := skipped[p]; !ok && p.missing == 0 {
				skipped[p] = struct{}{}
				describe(p)
			}
		}
	}
	// Stages were numbered parents first.
	slices.SortFunc(list, func(a, b event.Stage) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// CancelJob ends a job without its result. Stages that no other job needs are
// cancelled. A job that is over or unknown is ignored.
func (d *Scheduler) CancelJob(id msg.JobID, reason string) {
	if j := d.jobs[id]; j != nil {
		d.endJob(j, &JobError{Job: j.ID, Name: j.Name, CallSite: j.CallSite, Cancelled: true, Cause: reason})
	}
}

// endJob ends a job, with success if err is nil.
func (d *Scheduler) endJob(j *job, err *JobError) {
	delete(d.jobs, j.ID)
	reason := fmt.Sprintf("job %d is over", j.ID)
	switch {
	case err != nil && err.Cancelled:
		reason = fmt.Sprintf("job %d was cancelled: %s", j.ID, err.Cause)
	case err != nil:
		reason = fmt.Sprintf("job %d has failed", j.ID)
	}
	for _, s := range j.stages {
		s.jobs = slices.DeleteFunc(s.jobs, func(other *job) bool { return other == j })
		if len(s.jobs) == 0 {
			d.abandon(s, oneLine(reason))
		}
	}
	d.stages[j.result.id] = nil
	d.out.Ended = append(d.out.Ended, JobEnded{Job: j.ID, Err: err})
	ended := event.JobEnded{Job: j.ID}
	if err != nil {
		ended.Error, ended.Cancelled = err.Error(), err.Cancelled
	}
	d.out.Events = append(d.out.Events, ended)
	d.release(j.Image)
	d.sweep()
}

// release notes that an image has one user less.
func (d *Scheduler) release(id msg.ImageID) {
	if d.images[id]--; d.images[id] == 0 {
		delete(d.images, id)
		d.out.Release = append(d.out.Release, id)
	}
}

// DropShuffles takes the report that nothing in the driver refers to the shuffles
// any more. Their map stages and data are forgotten as soon as no running job
// reads them. It is the part of Spark's ContextCleaner that is decided here.
func (d *Scheduler) DropShuffles(ids []msg.ShuffleID) {
	d.dropped = append(d.dropped, ids...)
	d.sweep()
}

// sweep forgets the dropped shuffles that are not in use.
func (d *Scheduler) sweep() {
	if len(d.dropped) == 0 {
		return
	}
	used := make(map[*stage]struct{})
	for _, j := range d.jobs {
		for _, s := range j.stages {
			used[s] = struct{}{}
			for _, p := range s.parents {
				used[p] = struct{}{}
			}
		}
	}
	d.dropped = slices.DeleteFunc(d.dropped, func(id msg.ShuffleID) bool {
		s := d.byShuffle[id]
		if s == nil {
			return true
		}
		if _, ok := used[s]; ok {
			return false
		}
		delete(d.byShuffle, id)
		d.stages[s.id] = nil
		if s.attempts > 0 {
			d.release(s.desc.Image)
		}
		d.out.Remove = append(d.out.Remove, id)
		return true
	})
}

// abandon stops a stage that no job needs any more.
func (d *Scheduler) abandon(s *stage, reason string) {
	switch s.state {
	case running:
		d.cancelTasks(s, reason)
		d.stageEnded(s, reason)
	case waiting:
		d.stopWaiting(s)
	}
	if s.leftovers {
		d.cancelTasks(s, reason)
	}
}
