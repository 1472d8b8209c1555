package sched

import (
	"cmp"
	"slices"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/msg"
)

// taskSet is one attempt of a stage.
type taskSet struct {
	stage      msg.Stage
	priority   msg.JobID
	partitions []int
	tasks      []task      // as partitions
	left       int         // tasks that are not done
	next       int         // the first place that was not tried yet
	retry      []int       // places to try again, the first one first
	running    []*attempt  // in no particular order
	places     map[int]int // from partition to place; made when first asked for
	// over says that nothing is started any more; running tasks may go on.
	over   bool
	queued bool
}

// task is what is known of one partition of a set.
type task struct {
	attempts   uint32
	failures   uint32 // those that count
	done       bool   // delivered, by this attempt of the stage or an earlier one
	running    *attempt
	lastFailed *executor
}

// Submit takes a task set from dag.
func (s *Scheduler) Submit(ts dag.TaskSet) {
	set := &taskSet{
		stage: ts.Stage, priority: ts.Priority, partitions: ts.Partitions,
		tasks: make([]task, len(ts.Partitions)), left: len(ts.Partitions),
	}
	id := ts.Stage.ID.Stage
	s.sets[id] = append(s.sets[id], set)
	s.enqueue(set)
	s.forgetIfEmpty(set)
}

// Cancel takes dag's word that attempts of a stage are not wanted any more.
// Nothing of them is started from now on; their running tasks are killed.
func (s *Scheduler) Cancel(c dag.Cancel) {
	for _, set := range slices.Clone(s.sets[c.Stage.Stage]) {
		if set.stage.ID.Attempt <= c.Stage.Attempt {
			s.drop(set, c.Reason)
			s.forgetIfEmpty(set)
		}
	}
}

// PartitionDone takes dag's word that a partition of a stage attempt has been
// delivered by an earlier one: it is not started any more, and killed if it runs.
func (s *Scheduler) PartitionDone(p dag.PartitionDone) {
	for _, set := range s.sets[p.Stage.Stage] {
		if set.stage.ID != p.Stage {
			continue
		}
		place, ok := set.place(p.Partition)
		if !ok {
			return
		}
		set.settle(place)
		if a := set.tasks[place].running; a != nil {
			s.kill([]*attempt{a}, "an earlier attempt of the stage has delivered the partition")
		}
		s.forgetIfEmpty(set)
		return
	}
}

// place returns where a partition is in the set's order.
func (set *taskSet) place(partition int) (int, bool) {
	if set.places == nil {
		set.places = make(map[int]int, len(set.partitions))
		for i, p := range set.partitions {
			set.places[p] = i
		}
	}
	i, ok := set.places[partition]
	return i, ok
}

// settle notes that a partition is done.
func (set *taskSet) settle(place int) {
	if t := &set.tasks[place]; !t.done {
		t.done = true
		set.left--
	}
}

// fresh says whether there is a partition that was not tried yet, and moves
// next to it.
func (set *taskSet) fresh() bool {
	for set.next < len(set.tasks) && set.tasks[set.next].done {
		set.next++
	}
	return set.next < len(set.tasks)
}

// startable says whether the set may have something to start.
func (set *taskSet) startable() bool {
	return !set.over && set.left > 0 && (len(set.retry) > 0 || set.fresh())
}

// drop ends a set: what was not started never will be, what runs is killed.
func (s *Scheduler) drop(set *taskSet, reason string) {
	set.over = true
	s.kill(set.running, reason)
}

// kill asks the executors to stop attempts, those of one executor at once.
func (s *Scheduler) kill(attempts []*attempt, reason string) {
	sorted := byID(attempts)
	at := make(map[*executor]int) // in out.Kills
	for _, a := range sorted {
		if a.killed || a.executor.lost {
			continue
		}
		a.killed = true
		i, ok := at[a.executor]
		if !ok {
			i = len(s.out.Kills)
			at[a.executor] = i
			s.out.Kills = append(s.out.Kills, Kill{a.executor.id, msg.Kill{Reason: reason}})
		}
		s.out.Kills[i].Tasks = append(s.out.Kills[i].Tasks, a.id)
	}
}

// enqueue puts a set with something to start into the queue.
func (s *Scheduler) enqueue(set *taskSet) {
	if set.queued || !set.startable() {
		return
	}
	i, _ := slices.BinarySearchFunc(s.queue, set, func(a, b *taskSet) int {
		return cmp.Or(
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(a.stage.ID.Stage, b.stage.ID.Stage),
			cmp.Compare(a.stage.ID.Attempt, b.stage.ID.Attempt))
	})
	s.queue = slices.Insert(s.queue, i, set)
	set.queued = true
}

// forgetIfEmpty forgets a set that has nothing to start and nothing running.
func (s *Scheduler) forgetIfEmpty(set *taskSet) {
	if len(set.running) > 0 || !set.over && set.left > 0 {
		return
	}
	set.over = true
	if set.queued {
		i := slices.Index(s.queue, set)
		s.queue = slices.Delete(s.queue, i, i+1)
		set.queued = false
	}
	id := set.stage.ID.Stage
	rest := slices.DeleteFunc(s.sets[id], func(other *taskSet) bool { return other == set })
	if len(rest) == 0 {
		delete(s.sets, id)
	} else {
		s.sets[id] = rest
	}
}
