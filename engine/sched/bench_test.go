package sched

import (
	"fmt"
	"testing"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// instant is a cluster that does every task at once.
type instant struct {
	updates []msg.StatusUpdate
	spare   []msg.StatusUpdate
	results int
	ended   int
}

func (*instant) taskEnded(*dag.TaskEnd)          {}
func (*instant) taskSetFailed(dag.TaskSetFailed) {}
func (*instant) kill(Kill)                       {}
func (*instant) submitted(dag.TaskSet)           {}
func (*instant) cancelled(dag.Cancel)            {}
func (*instant) partitionDone(dag.PartitionDone) {}
func (i *instant) result(dag.JobResult)          { i.results++ }
func (i *instant) jobEnded(dag.JobEnded)         { i.ended++ }
func (*instant) released(msg.ImageID)            {}
func (*instant) happened(event.Event)            {}
func (i *instant) launched(l Launch) {
	for _, t := range l.Tasks {
		u := msg.StatusUpdate{Executor: l.Executor, Task: t.ID, Stage: l.Stage.ID, State: msg.StateFinished}
		if l.Stage.Kind == abi.TaskShuffle {
			u.MapOutput = &msg.MapOutput{
				Executor: l.Executor, Shuffle: msg.ShuffleID(l.Stage.Target), Map: t.Partition, Task: t.ID,
			}
		}
		i.updates = append(i.updates, u)
	}
}

// run brings the updates to the schedulers, batch at a time, until the jobs end.
func (i *instant) run(b *testing.B, w *shell, batch, jobs int) {
	w.settle()
	for len(i.updates) > 0 {
		round := i.updates
		i.updates, i.spare = i.spare[:0], round
		for k := range round {
			w.sched.StatusUpdate(&round[k])
			if (k+1)%batch == 0 {
				w.settle()
			}
		}
		w.settle()
	}
	if i.ended != jobs {
		b.Fatalf("%d jobs have ended, want %d", i.ended, jobs)
	}
}

// BenchmarkTask is the time of both schedulers for one task, with the two slots
// of a small machine and each end reported alone: the worst case.
func BenchmarkTask(b *testing.B) {
	for _, kind := range []string{"result", "shuffle"} {
		b.Run(kind, func(b *testing.B) {
			out := new(instant)
			w := newShell(1, 4, 4, out)
			if err := w.sched.ExecutorAdded("local", 2); err != nil {
				b.Fatal(err)
			}
			const most = 1 << 20
			jobs := (b.N + most - 1) / most
			b.ReportAllocs()
			for j := range jobs {
				n := min(most, b.N-j*most)
				rdd := j*2 + 1
				w.define(b, fmt.Sprintf("%d range n=%d", rdd, n), fmt.Sprintf("%d group shuffle=%d:%d/1", rdd+1, j+1, rdd))
				if kind == "shuffle" {
					rdd++
				}
				if err := w.dag.SubmitJob(dag.Job{ID: msg.JobID(j), RDD: msg.RDDID(rdd)}); err != nil {
					b.Fatal(err)
				}
				out.run(b, w, 1, j+1)
			}
		})
	}
}

// BenchmarkSmallJob is the time of both schedulers for a job of two tasks.
func BenchmarkSmallJob(b *testing.B) {
	out := new(instant)
	w := newShell(1, 4, 4, out)
	if err := w.sched.ExecutorAdded("local", 2); err != nil {
		b.Fatal(err)
	}
	w.define(b, "1 range n=2")
	b.ReportAllocs()
	for j := 0; b.Loop(); j++ {
		if err := w.dag.SubmitJob(dag.Job{ID: msg.JobID(j), RDD: 1}); err != nil {
			b.Fatal(err)
		}
		out.run(b, w, 1, j+1)
	}
}

// BenchmarkMillionTasks is a shuffle of 500,000 tasks and as many results on
// 10,000 executors of four slots.
func BenchmarkMillionTasks(b *testing.B) {
	for b.Loop() {
		out := new(instant)
		w := newShell(1, 4, 4, out)
		for i := range 10_000 {
			if err := w.sched.ExecutorAdded(msg.ExecutorID(fmt.Sprintf("executor-%d", i)), 4); err != nil {
				b.Fatal(err)
			}
		}
		w.define(b, "1 range n=500000", "2 group shuffle=1:1/500000")
		if err := w.dag.SubmitJob(dag.Job{RDD: 2}); err != nil {
			b.Fatal(err)
		}
		out.run(b, w, 1000, 1)
	}
}
