package driver

import (
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/sched"
)

// cluster is where the loop sends tasks. Its methods do not block.
type cluster interface {
	launch(msg.Launch)
	kill(msg.Kill)
	removeShuffles(msg.RemoveShuffles)
}

type loopConfig struct {
	seed          uint64
	maxFailures   int
	maxAttempts   int
	maxResultSize int64 // bytes; 0: no limit
	bus           *event.Bus
	log           *slog.Logger
	images        *images
}

// loop is the goroutine that owns the lineage and the schedulers. Everything
// else sends it calls and status updates; it does the caller's duties of
// engine/dag and engine/sched.
type loop struct {
	cfg   loopConfig
	graph *graph.Graph
	dag   *dag.Scheduler
	sched *sched.Scheduler
	to    cluster
	jobs  map[msg.JobID]*job
	ended chan struct{}

	mu     sync.Mutex
	wake   sync.Cond
	inbox  []mail
	closed bool
}

// mail is a call or, if that is nil, a status update.
type mail struct {
	call   func()
	update msg.StatusUpdate
}

func newLoop(cfg loopConfig) *loop {
	g := graph.New()
	l := &loop{
		cfg:   cfg,
		graph: g,
		dag:   dag.New(dag.Config{Seed: cfg.seed, MaxAttempts: cfg.maxAttempts, MaxResultSize: cfg.maxResultSize}, g),
		sched: sched.New(sched.Config{MaxFailures: cfg.maxFailures}),
		jobs:  make(map[msg.JobID]*job),
		ended: make(chan struct{}),
	}
	l.wake.L = &l.mu
	return l
}

// start begins with one executor of a number of slots.
func (l *loop) start(to cluster, slots int) {
	l.to = to
	if err := l.sched.ExecutorAdded(localExecutor, slots); err != nil {
		panic(err) // the master's slots were checked
	}
	l.cfg.bus.Post(event.ExecutorAdded{Executor: localExecutor, Slots: slots})
	go l.run()
}

// close ends the goroutine when it has done what was sent. What is sent later is
// refused.
func (l *loop) close() {
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	<-l.ended
}

func (l *loop) send(m mail) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.inbox = append(l.inbox, m)
	l.wake.Signal()
	return true
}

// status takes an executor's report.
func (l *loop) status(u msg.StatusUpdate) { l.send(mail{update: u}) }

var errClosed = errors.New("the application has ended")

// call runs f on the loop's goroutine and waits for it, which is not long: the
// loop never waits for anything but mail. With an error f has not run.
func (l *loop) call(f func()) error {
	done := make(chan struct{})
	if !l.send(mail{call: func() { defer close(done); f() }}) {
		return errClosed
	}
	<-done
	return nil
}

func (l *loop) run() {
	defer close(l.ended)
	var batch []mail
	for {
		l.mu.Lock()
		for len(l.inbox) == 0 && !l.closed {
			l.wake.Wait()
		}
		if len(l.inbox) == 0 {
			l.mu.Unlock()
			return
		}
		batch, l.inbox = l.inbox, batch[:0]
		l.mu.Unlock()
		for i := range batch {
			if m := &batch[i]; m.call != nil {
				m.call()
			} else {
				l.sched.StatusUpdate(&m.update)
			}
		}
		clear(batch)
		l.settle()
	}
}

// settle does what the schedulers say until they have nothing more.
func (l *loop) settle() {
	for {
		s := l.sched.Ready()
		l.tell(s)
		d := l.dag.Ready()
		l.do(d)
		if s.Empty() && d.Empty() {
			break
		}
	}
	for _, m := range l.sched.Launch() {
		for i := range m.Tasks {
			m.Tasks[i].Text = l.graph.TextInputs(m.Stage.RDD, m.Tasks[i].Partition)
		}
		if l.cfg.bus.Active() {
			for _, t := range m.Tasks {
				l.cfg.bus.Post(event.TaskStarted{Stage: m.Stage.ID, Task: t.ID, Partition: t.Partition, Attempt: t.Attempt, Executor: m.Executor})
			}
		}
		l.to.launch(m.Launch)
	}
}

// tell passes on to dag what sched reports.
func (l *loop) tell(r *sched.Ready) {
	for i := range r.Ended {
		end := &r.Ended[i]
		if l.cfg.bus.Active() {
			l.cfg.bus.Post(event.TaskEnded{
				Stage: end.Stage, Task: end.Task, Partition: end.Partition, Attempt: end.Attempt, Executor: end.Executor,
				State: end.State, Failure: end.Failure, Metrics: end.Metrics,
			})
		}
		if f := end.Failure; f != nil && f.Kind == msg.FailFetch { // which is mended, so nothing else tells of it
			l.cfg.log.Warn("shuffle data is lost", "stage", end.Stage, "partition", end.Partition, "cause", f.Message)
		}
		l.dag.TaskEnded(end)
	}
	for _, f := range r.Failed {
		l.dag.TaskSetFailed(f)
	}
	for _, k := range r.Kills {
		l.to.kill(k.Kill)
	}
}

// do carries out what dag wants.
func (l *loop) do(r *dag.Ready) {
	for _, ts := range r.Submit {
		l.sched.Submit(ts)
	}
	for _, c := range r.Cancel {
		l.sched.Cancel(c)
	}
	for _, p := range r.Done {
		l.sched.PartitionDone(p)
	}
	for i := range r.Results {
		l.deliver(&r.Results[i])
	}
	for _, e := range r.Events { // before the driver is told that its job has ended
		l.cfg.bus.Post(e)
	}
	for _, e := range r.Ended {
		if j := l.jobs[e.Job]; j != nil {
			delete(l.jobs, e.Job)
			if e.Err != nil {
				j.end(failure(e.Err))
			} else {
				j.end(nil)
			}
		}
	}
	for _, id := range r.Release {
		l.cfg.images.drop(id)
	}
	if len(r.Remove) > 0 {
		l.to.removeShuffles(msg.RemoveShuffles{Shuffles: slices.Clone(r.Remove)})
	}
}

func (l *loop) deliver(r *dag.JobResult) {
	j := l.jobs[r.Job]
	if j == nil {
		return
	}
	j.deliver(r)
}

// submit starts a job. No later one will read the dropped shuffles.
func (l *loop) submit(spec dag.Job, dropped []msg.ShuffleID, c *committer) (j *job, err error) {
	callErr := l.call(func() {
		l.dag.DropShuffles(dropped)
		if err = l.dag.SubmitJob(spec); err != nil {
			return
		}
		n := len(spec.Partitions)
		if spec.Partitions == nil {
			n, _ = l.graph.NumPartitions(spec.RDD)
		}
		j = newJob(spec.ID, n, c)
		l.jobs[spec.ID] = j
	})
	return j, errors.Join(callErr, err)
}

// cancel ends a job if it has not ended.
func (l *loop) cancel(j *job, reason string) {
	l.send(mail{call: func() { l.dag.CancelJob(j.id, reason) }})
}

// mapOutputs answers where a shuffle's outputs lie.
func (l *loop) mapOutputs(id msg.ShuffleID) (reply msg.MapOutputsReply, err error) {
	callErr := l.call(func() { reply, err = l.dag.MapOutputs(id) })
	return reply, errors.Join(callErr, err)
}
