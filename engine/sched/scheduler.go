package sched

import (
	"fmt"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Config is what a Scheduler needs to know beforehand.
type Config struct {
	// MaxFailures is how often one partition may fail before its task set is
	// given up, at least 1.
	MaxFailures int
}

// Scheduler starts tasks in slots. See the package comment for how to use it.
type Scheduler struct {
	cfg Config

	executors map[msg.ExecutorID]*executor // lost ones are nil
	free      executorQueue                // those with a free slot

	sets  map[msg.StageID][]*taskSet // with tasks to start or running, by attempt
	queue []*taskSet                 // those with tasks to start, in order

	running  map[msg.TaskID]*attempt
	nextTask msg.TaskID

	out, spare *Ready
	launches   []Launch
	spares     []*attempt // for reuse
	slab       []msg.Task // room for the tasks of launches
}

// New returns a scheduler without executors.
func New(cfg Config) *Scheduler {
	cfg.MaxFailures = max(cfg.MaxFailures, 1)
	return &Scheduler{
		cfg:       cfg,
		executors: make(map[msg.ExecutorID]*executor),
		sets:      make(map[msg.StageID][]*taskSet),
		running:   make(map[msg.TaskID]*attempt),
		out:       new(Ready),
		spare:     new(Ready),
	}
}

// attempt is a task that was given to an executor and has not ended.
type attempt struct {
	id         msg.TaskID
	set        *taskSet
	place      int // in the set's order
	number     int // 0 for the partition's first attempt in this set
	executor   *executor
	inExecutor int // in executor.running
	inSet      int // in set.running
	killed     bool
}

// Ready returns what is to be done because of the calls since the last Ready.
func (s *Scheduler) Ready() *Ready {
	r := s.out
	s.spare.reset()
	s.out, s.spare = s.spare, r
	return r
}

// StatusUpdate takes a message from an executor. It is ignored if it is about a
// task that has ended, or was never given to that executor.
func (s *Scheduler) StatusUpdate(u *msg.StatusUpdate) {
	if !u.State.Final() {
		return
	}
	a := s.running[u.Task]
	if a == nil || a.executor.id != u.Executor || a.set.stage.ID != u.Stage {
		return
	}
	s.end(a, u.State, u)
}

// end takes an attempt off the books, reports it, and decides what becomes of
// its partition.
func (s *Scheduler) end(a *attempt, state msg.State, u *msg.StatusUpdate) {
	set := a.set
	t := &set.tasks[a.place]
	s.out.Ended = append(s.out.Ended, dag.TaskEnd{
		Stage: set.stage.ID, Task: a.id, Partition: set.partitions[a.place], Attempt: a.number,
		Executor: a.executor.id, State: state, Metrics: u.Metrics,
	})
	e := &s.out.Ended[len(s.out.Ended)-1]
	if state == msg.StateFinished {
		e.Failure = set.checkOutput(u, e.Partition)
		if e.Failure != nil {
			e.State = msg.StateFailed
		}
	} else if e.Failure = u.Failure; e.Failure == nil {
		e.Failure = unexplained(state)
	}
	if e.Failure == nil {
		e.Result, e.MapOutput, e.Output = u.Result, u.MapOutput, u.Output
	}
	failure, executor := e.Failure, a.executor
	s.remove(a)
	t.running = nil
	switch {
	case failure == nil:
		set.settle(a.place)
	case set.over || t.done:
	case failure.Kind == msg.FailFetch:
		set.over = true
	default:
		t.lastFailed = executor
		if failure.Kind.Counts() {
			t.failures++
		}
		if int(t.failures) >= s.cfg.MaxFailures {
			s.out.Failed = append(s.out.Failed, dag.TaskSetFailed{
				Stage: set.stage.ID, Partition: set.partitions[a.place], Failures: int(t.failures), Failure: failure,
			})
			s.drop(set, fmt.Sprintf("partition %d of the stage has failed too often", set.partitions[a.place]))
			break
		}
		set.retry = append(set.retry, a.place)
		s.enqueue(set)
	}
	s.forgetIfEmpty(set)
	*a = attempt{}
	s.spares = append(s.spares, a)
}

// unexplained is the failure of an attempt whose executor gave none.
func unexplained(state msg.State) *msg.Failure {
	if state == msg.StateKilled {
		return &msg.Failure{Kind: msg.FailKilled, Message: "the task was killed"}
	}
	return &msg.Failure{Kind: msg.FailInternal, Message: "the executor reported a failure without a reason"}
}

// checkOutput returns why a finished task cannot be taken for finished, nil if
// it can.
func (set *taskSet) checkOutput(u *msg.StatusUpdate, partition int) *msg.Failure {
	var lacks string
	switch o := u.MapOutput; {
	case set.stage.Kind == abi.TaskShuffle &&
		(o == nil || o.Map != partition || uint32(o.Shuffle) != set.stage.Target):
		lacks = fmt.Sprintf("its output for shuffle %d", set.stage.Target)
	case set.stage.Sink != nil && (u.Output == nil || u.Output.Partition != partition):
		lacks = "its output file"
	default:
		return nil
	}
	return &msg.Failure{Kind: msg.FailInternal, Message: fmt.Sprintf(
		"executor %s reported partition %d as finished without %s", u.Executor, partition, lacks)}
}

// start gives a partition to an executor, which must have a free slot.
func (s *Scheduler) start(set *taskSet, place int, e *executor) msg.Task {
	t := &set.tasks[place]
	var a *attempt
	if n := len(s.spares); n > 0 {
		a = s.spares[n-1]
		s.spares = s.spares[:n-1]
	} else {
		a = new(attempt)
	}
	*a = attempt{
		id: s.nextTask, set: set, place: place, number: int(t.attempts), executor: e,
		inExecutor: len(e.running), inSet: len(set.running),
	}
	s.nextTask++
	t.attempts++
	t.running = a
	e.running = append(e.running, a)
	set.running = append(set.running, a)
	s.running[a.id] = a
	return msg.Task{ID: a.id, Partition: set.partitions[place], Attempt: a.number}
}

// remove takes an attempt off the books and frees its slot.
func (s *Scheduler) remove(a *attempt) {
	delete(s.running, a.id)
	e := a.executor
	last := len(e.running) - 1
	e.running[a.inExecutor] = e.running[last]
	e.running[a.inExecutor].inExecutor = a.inExecutor
	e.running[last] = nil
	e.running = e.running[:last]
	set := a.set
	last = len(set.running) - 1
	set.running[a.inSet] = set.running[last]
	set.running[a.inSet].inSet = a.inSet
	set.running[last] = nil
	set.running = set.running[:last]
	if !e.lost && !e.queued {
		s.free.push(e)
	}
}

// Launch starts what can be started. The returned slice is overwritten by the
// next call.
func (s *Scheduler) Launch() []Launch {
	clear(s.launches)
	s.launches = s.launches[:0]
	for s.free.len > 0 && len(s.queue) > 0 {
		set := s.queue[0]
		if set.startable() {
			s.launchRetries(set)
			s.launchFresh(set)
		}
		if set.startable() {
			break // no slot is free
		}
		s.queue[0] = nil
		s.queue = s.queue[1:]
		set.queued = false
	}
	return s.launches
}

// launchRetries starts partitions that have failed before, one by one, each on
// another executor than the last time if another has a free slot.
func (s *Scheduler) launchRetries(set *taskSet) {
	for len(set.retry) > 0 && s.free.len > 0 {
		place := set.retry[0]
		set.retry = set.retry[1:]
		t := &set.tasks[place]
		if t.done {
			continue
		}
		e := s.free.head
		if e == t.lastFailed && e.next != nil {
			e = e.next
		}
		tasks := append(s.room(1), s.start(set, place, e))
		s.launches = append(s.launches, Launch{e.id, msg.Launch{Stage: set.stage, Tasks: tasks}})
		s.free.rotate(e)
	}
}

// launchFresh starts partitions that were not tried yet, spread over the
// executors with free slots.
func (s *Scheduler) launchFresh(set *taskSet) {
	round := 0 // executors that have not had their turn in this round
	for set.fresh() && s.free.len > 0 {
		if round == 0 {
			round = s.free.len
		}
		e := s.free.head
		left := len(set.partitions) - set.next
		n := min((left+round-1)/round, e.slots-len(e.running))
		round--
		tasks := s.room(n)
		for len(tasks) < n && set.fresh() {
			tasks = append(tasks, s.start(set, set.next, e))
			set.next++
		}
		s.launches = append(s.launches, Launch{e.id, msg.Launch{Stage: set.stage, Tasks: tasks}})
		s.free.rotate(e)
	}
}

// slabSize is how many tasks are allocated at once. Executors in the same
// process hold on to them until the last one has ended.
const slabSize = 64

// room returns an empty slice with room for n tasks.
func (s *Scheduler) room(n int) []msg.Task {
	if n > len(s.slab) {
		s.slab = make([]msg.Task, max(n, slabSize))
	}
	r := s.slab[:0:n]
	s.slab = s.slab[n:]
	return r
}
