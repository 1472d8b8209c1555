package sched

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// shell is a shell around the two schedulers as the package comments ask for.
// What leaves them goes to out.
type shell struct {
	graph *graph.Graph
	dag   *dag.Scheduler
	sched *Scheduler
	out   output
}

// output is the world outside a shell.
type output interface {
	taskEnded(*dag.TaskEnd)
	taskSetFailed(dag.TaskSetFailed)
	kill(Kill)
	submitted(dag.TaskSet)
	cancelled(dag.Cancel)
	partitionDone(dag.PartitionDone)
	result(dag.JobResult)
	jobEnded(dag.JobEnded)
	released(msg.ImageID)
	happened(event.Event)
	launched(Launch)
}

func newShell(seed uint64, maxFailures, maxAttempts int, out output) *shell {
	g := graph.New()
	return &shell{
		graph: g,
		dag:   dag.New(dag.Config{Seed: seed, MaxAttempts: maxAttempts}, g),
		sched: New(Config{MaxFailures: maxFailures}),
		out:   out,
	}
}

// settle does all that there is to do.
func (w *shell) settle() {
	for {
		r := w.sched.Ready()
		for i := range r.Ended {
			w.out.taskEnded(&r.Ended[i])
			w.dag.TaskEnded(&r.Ended[i])
		}
		for _, f := range r.Failed {
			w.out.taskSetFailed(f)
			w.dag.TaskSetFailed(f)
		}
		for _, k := range r.Kills {
			w.out.kill(k)
		}
		d := w.dag.Ready()
		for _, ts := range d.Submit {
			w.out.submitted(ts)
			w.sched.Submit(ts)
		}
		for _, c := range d.Cancel {
			w.out.cancelled(c)
			w.sched.Cancel(c)
		}
		for _, p := range d.Done {
			w.out.partitionDone(p)
			w.sched.PartitionDone(p)
		}
		for _, r := range d.Results {
			w.out.result(r)
		}
		for _, j := range d.Ended {
			w.out.jobEnded(j)
		}
		for _, i := range d.Release {
			w.out.released(i)
		}
		for _, e := range d.Events {
			w.out.happened(e)
		}
		if r.Empty() && d.Empty() {
			break
		}
	}
	for _, l := range w.sched.Launch() {
		w.out.launched(l)
	}
}

// parseRDD reads an RDD's description, such as
//
//	3 reduceByKey shuffle=1:2/4
//
// which is RDD 3 that reads shuffle 1 of RDD 2 in 4 partitions. Other
// dependencies are one=2, range=2@4 and coalesce=2; n=4 is the number of
// partitions.
func parseRDD(args []string) (abi.RDDDesc, error) {
	var d abi.RDDDesc
	if len(args) < 2 {
		return d, fmt.Errorf("an RDD needs a number and a name")
	}
	id, err := strconv.Atoi(args[0])
	if err != nil {
		return d, err
	}
	d.ID, d.Name, d.CallSite = uint32(id), args[1], fmt.Sprintf("main.go:%d", id)
	for _, a := range args[2:] {
		kind, value, _ := strings.Cut(a, "=")
		var dep abi.DepDesc
		switch kind {
		case "n":
			_, err = fmt.Sscanf(value, "%d", &d.Partitions)
		case "one":
			dep.Kind = abi.DepOneToOne
			_, err = fmt.Sscanf(value, "%d", &dep.Parent)
		case "range":
			dep.Kind = abi.DepRange
			_, err = fmt.Sscanf(value, "%d@%d", &dep.Parent, &dep.Start)
		case "coalesce":
			dep.Kind = abi.DepCoalesce
			_, err = fmt.Sscanf(value, "%d", &dep.Parent)
		case "shuffle":
			dep.Kind = abi.DepShuffle
			dep.Shuffle = &abi.ShuffleDesc{Partitioner: abi.PartitionHash}
			_, err = fmt.Sscanf(value, "%d:%d/%d", &dep.Shuffle.ID, &dep.Parent, &dep.Shuffle.Partitions)
		default:
			err = fmt.Errorf("what is %q?", a)
		}
		if err != nil {
			return d, err
		}
		if dep.Kind != 0 {
			d.Deps = append(d.Deps, dep)
		}
	}
	return d, nil
}

// define adds RDDs in the notation of parseRDD.
func (w *shell) define(t testing.TB, lines ...string) {
	t.Helper()
	for _, line := range lines {
		d, err := parseRDD(strings.Fields(line))
		if err == nil {
			_, err = w.graph.Define(d, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
