package sched

import (
	"encoding/binary"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// What leaves the schedulers is checked against all that has left them before.

func (c *cluster) submitted(ts dag.TaskSet) {
	seen := make(map[int]bool)
	for _, p := range ts.Partitions {
		if seen[p] {
			c.errorf("%s has partition %d twice", ts.Stage.ID, p)
		}
		seen[p] = true
	}
	if len(ts.Partitions) == 0 {
		c.errorf("%s is empty", ts.Stage.ID)
	}
	id := ts.Stage.ID.Stage
	if first, ok := c.stages[id]; ok {
		again := ts.Stage
		again.ID, again.Job = first.ID, first.Job
		if diff := cmp.Diff(first, again); diff != "" {
			c.errorf("attempts of stage %d differ:\n%s", id, diff)
		}
	} else {
		c.stages[id] = ts.Stage
		if ts.Stage.Kind == abi.TaskShuffle {
			c.shuffles[msg.ShuffleID(ts.Stage.Target)] = id
		}
	}
}

func (c *cluster) launched(l Launch) {
	e := c.executors[l.Executor]
	if e.lost {
		c.errorf("tasks were launched on %s, which is lost", e.id)
	}
	if n, cancelled := c.cancels[l.Stage.ID.Stage]; cancelled && l.Stage.ID.Attempt <= n {
		c.errorf("tasks of %s were launched after it was cancelled", l.Stage.ID)
	}
	if l.Stage.Kind == abi.TaskShuffle {
		if _, err := c.dag.MapOutputs(msg.ShuffleID(l.Stage.Target)); err == nil {
			c.errorf("tasks of %s were launched although all its outputs are there", l.Stage.ID)
		}
	} else if j := c.jobs[l.Stage.Job]; j.ended {
		c.errorf("tasks of %s were launched after job %d has ended", l.Stage.ID, j.ID)
	}
	if len(l.Tasks) == 0 {
		c.errorf("an empty launch")
	}
	for _, t := range l.Tasks {
		if t.ID <= c.lastTask && c.lastTask != 0 {
			c.errorf("task %d comes after task %d", t.ID, c.lastTask)
		}
		c.lastTask = t.ID
		task := &simTask{Task: t, stage: l.Stage, executor: e}
		c.outstanding[t.ID] = task
		if e.outstanding++; e.outstanding > e.slots {
			c.errorf("executor %s was given %d tasks for %d slots", e.id, e.outstanding, e.slots)
		}
		at := placement{l.Stage.ID, t.Partition}
		if other, ok := c.busy[at]; ok {
			c.errorf("task %d: partition %d of %s is run by task %d", t.ID, t.Partition, l.Stage.ID, other)
		}
		c.busy[at] = t.ID
		if l.Stage.Kind == abi.TaskResult {
			if j := c.jobs[l.Stage.Job]; j.got[j.index(t.Partition)] {
				c.errorf("task %d: the result of partition %d of job %d is there", t.ID, t.Partition, j.ID)
			}
		}
		c.after(c.rng.IntN(8), func() { c.arrive(task) })
	}
}

func (c *cluster) taskEnded(end *dag.TaskEnd) {
	t := c.outstanding[end.Task]
	if t == nil {
		c.errorf("task %d ended twice or was never launched", end.Task)
		return
	}
	delete(c.outstanding, end.Task)
	delete(c.busy, placement{end.Stage, end.Partition})
	if t.executor.outstanding--; t.executor.outstanding < 0 {
		c.errorf("executor %s has %d tasks", t.executor.id, t.executor.outstanding)
	}
	if t.stage.ID != end.Stage || t.Partition != end.Partition || t.executor.id != end.Executor || t.Attempt != end.Attempt {
		c.errorf("task %+v of %s on %s ended as %+v", t.Task, t.stage.ID, t.executor.id, end)
	}
	if (end.Failure == nil) != (end.State == msg.StateFinished) {
		c.errorf("task %d ended %s with failure %v", end.Task, end.State, end.Failure)
	}
}

func (c *cluster) taskSetFailed(f dag.TaskSetFailed) {
	if f.Failures != c.limits.maxFailures || f.Failure == nil {
		c.errorf("task set given up with %+v", f)
	}
}

func (c *cluster) kill(k Kill) {
	for _, id := range k.Tasks {
		t := c.outstanding[id]
		switch {
		case id > c.lastTask:
			c.errorf("task %d is killed but was not launched", id)
		case t == nil:
			// Its end has been reported in the same breath.
		case t.killed:
			c.errorf("task %d is killed twice", id)
		case t.executor.id != k.Executor:
			c.errorf("task %d is killed on %s but runs on %s", id, k.Executor, t.executor.id)
		default:
			t.killed = true
			c.after(c.rng.IntN(10), func() { c.stop(t) })
		}
	}
}

func (c *cluster) cancelled(n dag.Cancel) { c.cancels[n.Stage.Stage] = n.Stage.Attempt }

func (c *cluster) partitionDone(d dag.PartitionDone) {
	if _, ok := c.stages[d.Stage.Stage]; !ok || d.Stage.Attempt == 0 {
		c.errorf("partition %d of %s is done, but no earlier attempt can have done it", d.Partition, d.Stage)
	}
}

func (c *cluster) result(r dag.JobResult) {
	j := c.jobs[r.Job]
	switch {
	case j.ended:
		c.errorf("result %d of job %d after its end", r.Index, r.Job)
	case r.Index != j.index(r.Partition):
		c.errorf("result %d of job %d is of partition %d", r.Index, r.Job, r.Partition)
	case j.got[r.Index]:
		c.errorf("result %d of job %d came twice", r.Index, r.Job)
	}
	j.got[r.Index] = true
	j.results[r.Index] = binary.LittleEndian.Uint64(r.Result[0])
}

func (j *simJob) index(partition int) int {
	for i, p := range j.Partitions {
		if p == partition {
			return i
		}
	}
	return partition
}

func (c *cluster) jobEnded(e dag.JobEnded) {
	j := c.jobs[e.Job]
	if j.ended {
		c.errorf("job %d ended twice", e.Job)
	}
	j.ended, j.err = true, e.Err
}

func (c *cluster) released(id msg.ImageID) {
	if c.images[id] {
		c.errorf("image %d is released twice", id)
	}
	c.images[id] = true
}

func (c *cluster) happened(e event.Event) {
	switch e := e.(type) {
	case event.StageSubmitted:
		if _, again := c.open[e.Stage]; again {
			c.errorf("%s is submitted twice", e.Stage)
		}
		c.open[e.Stage] = true
	case event.StageCompleted:
		if !c.open[e.Stage] {
			c.errorf("%s completes but was not submitted, or completes twice", e.Stage)
		}
		c.open[e.Stage] = false
	}
}

// checkEnd checks what is left when nothing more will happen, and returns how
// many jobs failed.
func (c *cluster) checkEnd() int {
	failed := 0
	for _, j := range c.jobs {
		switch {
		case !j.ended:
			c.errorf("job %d has not ended", j.ID)
		case j.err == nil:
			c.checkResults(j)
		case j.err.Cancelled:
			if !j.cancelled {
				c.errorf("job %d was cancelled by nobody", j.ID)
			}
		default:
			failed++
			if !c.limits.mayFail || j.err.Failure == nil {
				c.errorf("%v", j.err)
			}
		}
	}
	for at, open := range c.open {
		if open {
			c.errorf("%s was submitted but has not completed", at)
		}
	}
	for id, t := range c.outstanding {
		c.errorf("task %d of %s has not ended", id, t.stage.ID)
	}
	kept := make(map[msg.ImageID]bool) // by map stages
	for _, s := range c.stages {
		if s.Kind == abi.TaskShuffle {
			kept[s.Image] = true
		}
	}
	for _, j := range c.jobs {
		if c.images[j.Image] == kept[j.Image] {
			c.errorf("image %d: released %t, kept by a map stage %t", j.Image, c.images[j.Image], kept[j.Image])
		}
	}
	c.checkScheduler()
	return failed
}

// checkScheduler checks that the scheduler has forgotten everything.
func (c *cluster) checkScheduler() {
	s := c.sched
	if len(s.sets) > 0 || len(s.running) > 0 {
		c.errorf("%d task sets and %d running tasks are left", len(s.sets), len(s.running))
	}
	free := 0
	for id, e := range s.executors {
		if e == nil {
			continue
		}
		free++
		if len(e.running) > 0 || !e.queued {
			c.errorf("executor %s: %d tasks, in the queue %t", id, len(e.running), e.queued)
		}
	}
	if s.free.len != free {
		c.errorf("%d executors in the queue, not %d", s.free.len, free)
	}
}

// checkResults compares a job's results with the model, which computes them from
// the lineage alone, with the images and seeds that the stages first had.
func (c *cluster) checkResults(j *simJob) {
	var read func(s *graph.Shuffle, m int) (uint64, bool)
	read = func(s *graph.Shuffle, m int) (uint64, bool) {
		stage, ok := c.stages[c.shuffles[s.ID]]
		if !ok {
			c.errorf("job %d has results, but shuffle %d was never computed", j.ID, s.ID)
			return 0, false
		}
		return blockValue(stage, m, c.value(s.Parent, m, read)), true
	}
	stage := msg.Stage{}
	for _, s := range c.stages {
		if s.Kind == abi.TaskResult && s.Job == j.ID {
			stage = s
		}
	}
	for i := range j.results {
		p := i
		if j.Partitions != nil {
			p = j.Partitions[i]
		}
		want := resultValue(stage, p, c.value(c.graph.RDD(j.RDD), p, read))
		if !j.got[i] || j.results[i] != want {
			c.errorf("job %d, partition %d: got %t %x, want %x", j.ID, p, j.got[i], j.results[i], want)
		}
	}
	if len(j.results) > 0 && (stage.Image != j.Image || stage.Target != j.Action) {
		c.errorf("job %d ran with image %d and action %d", j.ID, stage.Image, stage.Target)
	}
}
