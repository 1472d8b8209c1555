package sched

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// TestAFaultyClusterGivesTheExactResult runs random jobs on a simulated cluster
// whose executors die, are taken for dead, lose map outputs and fail tasks, and
// whose messages are delayed, reordered, doubled and dropped. Limits are such
// that every job must succeed; its results must be those of the model, however
// often they had to be computed.
func TestAFaultyClusterGivesTheExactResult(t *testing.T) {
	for seed := range uint64(2000) {
		runCluster(t, seed, clusterLimits{maxFailures: 4, maxAttempts: 1000, userFailures: 3})
	}
}

// TestAVeryFaultyClusterFailsInOrder does the same with narrow limits: jobs may
// fail, but then with a cause, and nothing is left of them.
func TestAVeryFaultyClusterFailsInOrder(t *testing.T) {
	failed := 0
	for seed := range uint64(2000) {
		failed += runCluster(t, seed, clusterLimits{maxFailures: 2, maxAttempts: 2, userFailures: 2, mayFail: true})
	}
	if failed < 100 {
		t.Errorf("only %d jobs have failed: the cluster is not faulty enough to prove anything", failed)
	}
}

type clusterLimits struct {
	maxFailures, maxAttempts int
	userFailures             int // of a partition in a stage attempt, at most
	mayFail                  bool
}

// runCluster runs one simulation to its end and returns how many jobs failed.
func runCluster(t *testing.T, seed uint64, limits clusterLimits) int {
	c := &cluster{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), limits: limits, faults: 10 + int(seed%50),
		jobs:        make(map[msg.JobID]*simJob),
		executors:   make(map[msg.ExecutorID]*simExecutor),
		outstanding: make(map[msg.TaskID]*simTask),
		busy:        make(map[placement]msg.TaskID),
		failures:    make(map[placement]int),
		stages:      make(map[msg.StageID]msg.Stage),
		shuffles:    make(map[msg.ShuffleID]msg.StageID),
		cancels:     make(map[msg.StageID]int),
		open:        make(map[msg.StageAttempt]bool),
		images:      make(map[msg.ImageID]bool),
	}
	c.shell = newShell(99, limits.maxFailures, limits.maxAttempts, c)
	c.makeLineage()
	for range 2 + c.rng.IntN(3) {
		c.addExecutor()
	}
	for id := range msg.JobID(1 + c.rng.IntN(6)) {
		c.after(c.rng.IntN(400), func() { c.submitJob(id) })
	}
	for c.steps = 0; len(c.agenda) > 0 && !t.Failed(); c.steps++ {
		if c.steps > 50_000 {
			t.Fatalf("seed %d: no end after %d steps", seed, c.steps)
		}
		e := heap.Pop(&c.agenda).(appointment)
		c.now = e.at
		e.do()
		if len(c.agenda) == 0 || c.rng.IntN(10) < 7 {
			c.settle()
		}
	}
	return c.checkEnd()
}

// cluster is the world around a shell: executors and the wires to them.
type cluster struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	limits clusterLimits
	*shell

	now        int
	steps      int
	agenda     agenda
	faults     int // that may still happen
	lastNumber int // of an appointment

	lineage   []*graph.RDD
	jobs      map[msg.JobID]*simJob
	executors map[msg.ExecutorID]*simExecutor
	names     []msg.ExecutorID // of all executors, in order

	// What the schedulers have said so far.
	outstanding map[msg.TaskID]*simTask  // launched and not ended
	busy        map[placement]msg.TaskID // partitions that run
	failures    map[placement]int        // of user code
	lastTask    msg.TaskID
	stages      map[msg.StageID]msg.Stage // as first submitted
	shuffles    map[msg.ShuffleID]msg.StageID
	cancels     map[msg.StageID]int // attempts up to there are cancelled
	open        map[msg.StageAttempt]bool
	images      map[msg.ImageID]bool // released
}

type simJob struct {
	dag.Job
	results   []uint64
	got       []bool
	ended     bool
	cancelled bool
	err       *dag.JobError
}

type placement struct {
	stage     msg.StageAttempt
	partition int
}

type simExecutor struct {
	id          msg.ExecutorID
	slots       int
	alive       bool
	lost        bool // the schedulers were told
	running     map[msg.TaskID]bool
	blocks      map[block]uint64
	outstanding int // tasks, as the schedulers see it
}

// block names the output of a map task.
type block struct {
	shuffle msg.ShuffleID
	mapPart int
	task    msg.TaskID
}

type simTask struct {
	msg.Task
	stage    msg.Stage
	executor *simExecutor
	killed   bool
}

func (c *cluster) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("seed %d, step %d: %s", c.seed, c.steps, fmt.Sprintf(format, args...))
}

// An appointment is something that will happen.
type appointment struct {
	at, number int
	do         func()
}

type agenda []appointment

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].number < a[j].number
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(appointment)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func (c *cluster) after(ticks int, do func()) {
	c.lastNumber++
	heap.Push(&c.agenda, appointment{c.now + ticks, c.lastNumber, do})
}

// fault says whether a fault of this probability in percent happens now.
func (c *cluster) fault(percent int) bool {
	if c.faults == 0 || c.rng.IntN(100) >= percent {
		return false
	}
	c.faults--
	return true
}

// makeLineage defines some RDDs at random.
func (c *cluster) makeLineage() {
	var shuffles uint32
	for id := uint32(1); id <= uint32(4+c.rng.IntN(6)); id++ {
		d := abi.RDDDesc{ID: id, Name: "op"}
		pick := func() *graph.RDD { return c.lineage[c.rng.IntN(len(c.lineage))] }
		shuffle := func(p *graph.RDD, n int) abi.DepDesc {
			shuffles++
			return abi.DepDesc{Parent: uint32(p.ID), Kind: abi.DepShuffle, Shuffle: &abi.ShuffleDesc{
				ID: shuffles, Partitioner: abi.PartitionHash, Partitions: n,
			}}
		}
		kind := c.rng.IntN(9)
		if len(c.lineage) == 0 {
			kind = 0
		}
		switch kind {
		case 0: // a source
			d.Partitions = 1 + c.rng.IntN(8)
		case 1: // map
			d.Deps = []abi.DepDesc{{Parent: uint32(pick().ID), Kind: abi.DepOneToOne}}
		case 2: // union
			a, b := pick(), pick()
			d.Deps = []abi.DepDesc{
				{Parent: uint32(a.ID), Kind: abi.DepRange}, {Parent: uint32(b.ID), Kind: abi.DepRange, Start: a.Partitions},
			}
		case 3: // coalesce
			p := pick()
			d.Partitions = 1 + c.rng.IntN(p.Partitions)
			d.Deps = []abi.DepDesc{{Parent: uint32(p.ID), Kind: abi.DepCoalesce}}
		case 4: // join with something that is partitioned already
			p := pick()
			d.Deps = []abi.DepDesc{{Parent: uint32(p.ID), Kind: abi.DepOneToOne}, shuffle(pick(), p.Partitions)}
		case 5: // join
			n := 1 + c.rng.IntN(5)
			d.Deps = []abi.DepDesc{shuffle(pick(), n), shuffle(pick(), n)}
		default: // reduceByKey
			d.Deps = []abi.DepDesc{shuffle(pick(), 1+c.rng.IntN(5))}
		}
		if _, err := c.graph.Define(d, nil); err != nil {
			c.t.Fatalf("seed %d: %v", c.seed, err)
		}
		c.lineage = append(c.lineage, c.graph.RDD(msg.RDDID(id)))
	}
}

func (c *cluster) addExecutor() {
	e := &simExecutor{
		id: msg.ExecutorID(fmt.Sprintf("x%d", len(c.names))), slots: 1 + c.rng.IntN(3), alive: true,
		running: make(map[msg.TaskID]bool), blocks: make(map[block]uint64),
	}
	c.executors[e.id] = e
	c.names = append(c.names, e.id)
	if err := c.sched.ExecutorAdded(e.id, e.slots); err != nil {
		c.errorf("%v", err)
	}
	if c.fault(40) {
		c.after(c.rng.IntN(400), func() { c.die(e) })
	}
}

// die stops an executor. It takes a while until that is noticed.
func (c *cluster) die(e *simExecutor) {
	e.alive = false
	c.after(c.rng.IntN(60), func() { c.lose(e) })
}

// lose tells the schedulers that an executor is gone, which may be wrong, and
// starts another one.
func (c *cluster) lose(e *simExecutor) {
	if e.lost {
		return
	}
	e.lost = true
	tell := []func(){
		func() { c.sched.ExecutorLost(e.id, msg.Failure{Message: "no heartbeat"}) },
		func() { c.dag.ExecutorLost(e.id) },
	}
	if c.rng.IntN(2) == 0 {
		slices.Reverse(tell)
	}
	tell[0]()
	tell[1]()
	c.after(c.rng.IntN(30), c.addExecutor)
}

func (c *cluster) submitJob(id msg.JobID) {
	rdd := c.lineage[len(c.lineage)-1-c.rng.IntN(min(4, len(c.lineage)))]
	j := &simJob{Job: dag.Job{ID: id, RDD: rdd.ID, Action: 50 + uint32(id), Name: "collect", Image: 1000 + msg.ImageID(id)}}
	count := rdd.Partitions
	if c.rng.IntN(3) == 0 {
		j.Partitions = c.rng.Perm(count)[:c.rng.IntN(count+1)]
		count = len(j.Partitions)
	}
	j.results, j.got = make([]uint64, count), make([]bool, count)
	c.jobs[id] = j
	if err := c.dag.SubmitJob(j.Job); err != nil {
		c.errorf("%v", err)
	}
	if c.rng.IntN(8) == 0 {
		c.after(c.rng.IntN(150), func() {
			j.cancelled = true
			c.dag.CancelJob(id, "changed my mind")
		})
	}
}

// arrive brings a task to its executor.
func (c *cluster) arrive(task *simTask) {
	e := task.executor
	if !e.alive {
		return
	}
	e.running[task.ID] = true
	if len(e.running) > e.slots {
		c.errorf("executor %s runs %d tasks in %d slots", e.id, len(e.running), e.slots)
	}
	c.send(task, msg.StateRunning, nil, 0)
	// Where the map outputs lie is asked at the start, and may be out of date
	// when they are read.
	where := make(map[msg.ShuffleID][]msg.MapOutput)
	for _, r := range task.stage.Reads {
		if reply, err := c.dag.MapOutputs(msg.ShuffleID(r.ID)); err == nil {
			where[msg.ShuffleID(r.ID)] = reply.Outputs
		}
	}
	duration := 1 + c.rng.IntN(40)
	if c.rng.IntN(6) == 0 {
		duration += c.rng.IntN(300) // long enough to outlive its stage attempt
	}
	c.after(duration, func() { c.finish(task, where) })
}

// finish ends a task that was not stopped before.
func (c *cluster) finish(task *simTask, where map[msg.ShuffleID][]msg.MapOutput) {
	e := task.executor
	if !e.alive || !e.running[task.ID] {
		return
	}
	delete(e.running, task.ID)
	at := placement{task.stage.ID, task.Partition}
	if c.failures[at] < c.limits.userFailures && c.fault(6) {
		c.failures[at]++
		c.send(task, msg.StateFailed, &msg.Failure{Kind: msg.FailUser, Message: "panic: boom"}, 0)
		return
	}
	var lost *msg.FetchLost
	value := c.value(c.graph.RDD(task.stage.RDD), task.Partition, func(s *graph.Shuffle, m int) (uint64, bool) {
		if where[s.ID] == nil {
			lost = &msg.FetchLost{Shuffle: s.ID, Map: -1}
			return 0, false
		}
		o := where[s.ID][m]
		v, ok := c.executors[o.Executor].blocks[block{s.ID, m, o.Task}]
		if !ok || !c.executors[o.Executor].alive {
			lost = &msg.FetchLost{Executor: o.Executor, Shuffle: s.ID, Map: m, Task: o.Task}
			return 0, false
		}
		return v, true
	})
	if lost != nil {
		c.send(task, msg.StateFailed, &msg.Failure{Kind: msg.FailFetch, Message: "cannot read", Fetch: lost}, 0)
		return
	}
	if task.stage.Kind == abi.TaskShuffle {
		b := block{msg.ShuffleID(task.stage.Target), task.Partition, task.ID}
		e.blocks[b] = blockValue(task.stage, task.Partition, value)
		if c.fault(10) {
			c.after(c.rng.IntN(100), func() { delete(e.blocks, b) })
		}
		c.send(task, msg.StateFinished, nil, 0)
		return
	}
	c.send(task, msg.StateFinished, nil, resultValue(task.stage, task.Partition, value))
}

// stop brings a kill to an executor. It may come too late.
func (c *cluster) stop(task *simTask) {
	e := task.executor
	if e.alive && e.running[task.ID] && c.rng.IntN(4) > 0 {
		delete(e.running, task.ID)
		c.send(task, msg.StateKilled, &msg.Failure{Kind: msg.FailKilled, Message: "killed"}, 0)
	}
}

// send brings a status update to the schedulers, late, twice or never.
func (c *cluster) send(task *simTask, state msg.State, f *msg.Failure, result uint64) {
	u := &msg.StatusUpdate{
		Executor: task.executor.id, Task: task.ID, Stage: task.stage.ID, State: state, Failure: f,
	}
	if state == msg.StateFinished {
		if task.stage.Kind == abi.TaskShuffle {
			u.MapOutput = &msg.MapOutput{
				Executor: u.Executor, Shuffle: msg.ShuffleID(task.stage.Target), Map: task.Partition, Task: task.ID,
			}
		} else {
			u.Result = [][]byte{binary.LittleEndian.AppendUint64(nil, result)}
		}
	}
	if state.Final() && c.fault(3) {
		// Messages are lost only together with the connection to the executor.
		c.after(c.rng.IntN(60), func() { c.lose(task.executor) })
		return
	}
	deliver := func() { c.sched.StatusUpdate(u) }
	c.after(c.rng.IntN(15), deliver)
	if c.rng.IntN(10) == 0 {
		c.after(c.rng.IntN(80), deliver)
	}
}

// value computes a partition as a task would: it depends on everything that is
// read, in order.
func (c *cluster) value(r *graph.RDD, partition int, read func(*graph.Shuffle, int) (uint64, bool)) uint64 {
	words := []uint64{uint64(r.ID), uint64(partition)}
	for _, d := range r.Deps {
		switch d.Kind {
		case abi.DepOneToOne:
			words = append(words, c.value(d.Parent, partition, read))
		case abi.DepRange:
			if p := partition - d.Start; p >= 0 && p < d.Parent.Partitions {
				words = append(words, c.value(d.Parent, p, read))
			}
		case abi.DepCoalesce:
			m := d.Parent.Partitions
			for p := partition * m / r.Partitions; p < (partition+1)*m/r.Partitions; p++ {
				words = append(words, c.value(d.Parent, p, read))
			}
		case abi.DepShuffle:
			for m := range d.Shuffle.Parent.Partitions {
				v, ok := read(d.Shuffle, m)
				if !ok {
					return 0
				}
				words = append(words, hash(v, uint64(partition)))
			}
		}
	}
	return hash(words...)
}

// blockValue is a map output's content. It depends on the image and the seed, so
// that outputs which do not fit together are noticed.
func blockValue(s msg.Stage, mapPart int, value uint64) uint64 {
	return hash(uint64(s.Target), uint64(mapPart), uint64(s.Image), s.Seed, value)
}

func resultValue(s msg.Stage, partition int, value uint64) uint64 {
	return hash(uint64(s.Target), uint64(partition), uint64(s.Image), s.Seed, value)
}

func hash(words ...uint64) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		h.Write(binary.LittleEndian.AppendUint64(nil, w))
	}
	return h.Sum64()
}
