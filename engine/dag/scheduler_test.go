package dag

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Whole interactions are in the transcripts of engine/sched.

// world is a scheduler with a lineage, and what it has asked for.
type world struct {
	*Scheduler
	t        *testing.T
	g        *graph.Graph
	shuffles uint32
	rdds     uint32
	tasks    msg.TaskID
	sets     []TaskSet // not yet run
	results  []JobResult
	ended    []JobEnded
	released []msg.ImageID
	events   []event.Event
}

func newWorld(t *testing.T, cfg Config) *world {
	g := graph.New()
	return &world{Scheduler: New(cfg, g), t: t, g: g}
}

// define adds an RDD and returns its number.
func (w *world) define(partitions int, deps ...abi.DepDesc) uint32 {
	w.t.Helper()
	w.rdds++
	d := abi.RDDDesc{ID: w.rdds, Name: "op", CallSite: "main.go:7", Partitions: partitions, Deps: deps}
	if _, err := w.g.Define(d, nil); err != nil {
		w.t.Fatal(err)
	}
	return w.rdds
}

func oneToOne(parent uint32) abi.DepDesc {
	return abi.DepDesc{Parent: parent, Kind: abi.DepOneToOne}
}

// shuffle is a dependency through a new shuffle.
func (w *world) shuffle(parent uint32, partitions int) abi.DepDesc {
	w.shuffles++
	return abi.DepDesc{Parent: parent, Kind: abi.DepShuffle, Shuffle: &abi.ShuffleDesc{
		ID: w.shuffles, Partitioner: abi.PartitionHash, Partitions: partitions,
	}}
}

func (w *world) submit(id msg.JobID, rdd uint32, image msg.ImageID) {
	w.t.Helper()
	j := Job{ID: id, RDD: msg.RDDID(rdd), Action: 1, Name: "count", CallSite: "main.go:12", Image: image}
	if err := w.SubmitJob(j); err != nil {
		w.t.Fatal(err)
	}
	w.collect()
}

// collect takes what is ready.
func (w *world) collect() *Ready {
	r := w.Ready()
	w.sets = append(w.sets, r.Submit...)
	w.results = append(w.results, r.Results...)
	w.ended = append(w.ended, r.Ended...)
	w.released = append(w.released, r.Release...)
	w.events = append(w.events, r.Events...)
	return r
}

// finished is the end of a task that has done its work on executor x.
func (w *world) finished(s msg.Stage, partition int) *TaskEnd {
	w.tasks++
	e := &TaskEnd{Stage: s.ID, Task: w.tasks, Partition: partition, Executor: "x", State: msg.StateFinished}
	if s.Kind == abi.TaskShuffle {
		e.MapOutput = &msg.MapOutput{Executor: "x", Shuffle: msg.ShuffleID(s.Target), Map: partition, Task: e.Task}
	}
	return e
}

// fetchFailure is the end of a task that could not read a map output.
func (w *world) fetchFailure(s msg.Stage, partition int, lost *msg.FetchLost) *TaskEnd {
	w.tasks++
	return &TaskEnd{
		Stage: s.ID, Task: w.tasks, Partition: partition, Executor: "x", State: msg.StateFailed,
		Failure: &msg.Failure{Kind: msg.FailFetch, Message: "block is corrupt", Fetch: lost},
	}
}

// runAll runs task sets until there are none, and returns the stages that ran.
func (w *world) runAll() []msg.StageAttempt {
	var ran []msg.StageAttempt
	for len(w.sets) > 0 {
		ran = append(ran, w.runOne().ID)
	}
	return ran
}

// runOne runs the oldest task set.
func (w *world) runOne() msg.Stage {
	ts := w.sets[0]
	w.sets = w.sets[1:]
	for _, p := range ts.Partitions {
		w.TaskEnded(w.finished(ts.Stage, p))
	}
	w.collect()
	return ts.Stage
}

func TestStagesAreCutAtShuffles(t *testing.T) {
	w := newWorld(t, Config{})
	left := w.define(3)
	right := w.define(2)
	mapped := w.define(0, oneToOne(right))
	joined := w.define(0, w.shuffle(left, 4), w.shuffle(mapped, 4))
	sorted := w.define(0, w.shuffle(w.define(0, oneToOne(joined)), 5))
	w.submit(0, w.define(0, oneToOne(sorted)), 1)

	type stage struct {
		RDD    uint32
		Kind   abi.TaskKind
		Target uint32
		Tasks  int
		Reads  []uint32
		Writes uint32
	}
	var got []stage
	for len(w.sets) > 0 {
		s := stage{Tasks: len(w.sets[0].Partitions)}
		d := w.runOne()
		s.RDD, s.Kind, s.Target = uint32(d.RDD), d.Kind, d.Target
		for _, r := range d.Reads {
			s.Reads = append(s.Reads, r.ID)
		}
		if d.Shuffle != nil {
			s.Writes = d.Shuffle.ID
		}
		got = append(got, s)
	}
	want := []stage{
		{RDD: left, Kind: abi.TaskShuffle, Target: 1, Tasks: 3, Writes: 1},
		{RDD: mapped, Kind: abi.TaskShuffle, Target: 2, Tasks: 2, Writes: 2},
		{RDD: joined + 1, Kind: abi.TaskShuffle, Target: 3, Tasks: 4, Reads: []uint32{1, 2}, Writes: 3},
		{RDD: sorted + 1, Kind: abi.TaskResult, Target: 1, Tasks: 5, Reads: []uint32{3}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if len(w.results) != 5 || len(w.ended) != 1 || w.ended[0].Err != nil {
		t.Errorf("%d results, ended %+v", len(w.results), w.ended)
	}
}

// seedsOf runs two jobs and returns the seeds of all attempts by stage.
func seedsOf(t *testing.T, seed uint64, faulty bool) map[msg.StageID][]uint64 {
	w := newWorld(t, Config{Seed: seed, MaxAttempts: 4})
	first := w.define(0, w.shuffle(w.define(2), 2))
	second := w.define(0, w.shuffle(first, 2))
	seeds := make(map[msg.StageID][]uint64)
	for job, rdd := range []uint32{first, second} {
		w.submit(msg.JobID(job), rdd, msg.ImageID(job))
		for len(w.sets) > 0 {
			s := w.sets[0].Stage
			seeds[s.ID.Stage] = append(seeds[s.ID.Stage], s.Seed)
			w.runOne()
		}
		if faulty {
			w.ExecutorLost("x")
			delete(w.lost, "x") // another of that name takes over
		}
	}
	return seeds
}

func TestSeedsAreTheSameWhateverFails(t *testing.T) {
	clean, faulty := seedsOf(t, 5, false), seedsOf(t, 5, true)
	if len(clean) != 4 || len(faulty[0]) != 2 {
		t.Fatalf("%d stages ran, the first %d times after a loss", len(clean), len(faulty[0]))
	}
	all := make(map[uint64]msg.StageID)
	for id, seeds := range faulty {
		for _, s := range seeds {
			if s != clean[id][0] {
				t.Errorf("stage %d has seeds %x with failures, %x without", id, seeds, clean[id])
			}
		}
		if other, ok := all[seeds[0]]; ok {
			t.Errorf("stages %d and %d have the same seed", id, other)
		}
		all[seeds[0]] = id
	}
	for id, seeds := range seedsOf(t, 6, false) {
		if seeds[0] == clean[id][0] {
			t.Errorf("stage %d has the same seed in an application of another seed", id)
		}
	}
}

func TestMapOutputsStayAsTheyWereGiven(t *testing.T) {
	w := newWorld(t, Config{MaxAttempts: 4})
	w.submit(0, w.define(0, w.shuffle(w.define(2), 1)), 1)
	if _, err := w.MapOutputs(9); err == nil || err.Error() != "map outputs of shuffle 9: there is no such shuffle" {
		t.Errorf("unknown shuffle: %v", err)
	}
	w.runOne()
	before, err := w.MapOutputs(1)
	if err != nil {
		t.Fatal(err)
	}
	kept := append([]msg.MapOutput(nil), before.Outputs...)
	w.ExecutorLost("x")
	var missing *MissingOutputsError
	if _, err := w.MapOutputs(1); !errors.As(err, &missing) ||
		err.Error() != "shuffle 1 (op at main.go:7): 2 of 2 map outputs are missing" {
		t.Errorf("lost outputs: %v", err)
	}
	if diff := cmp.Diff(kept, before.Outputs); diff != "" {
		t.Errorf("outputs changed after they were given away:\n%s", diff)
	}
}

func TestAReportAboutAnOutputThatWasReplacedIsStale(t *testing.T) {
	w := newWorld(t, Config{MaxAttempts: 9})
	w.submit(0, w.define(0, w.shuffle(w.define(1), 3)), 1)
	w.runOne()
	reduce := w.sets[0].Stage
	old := &msg.FetchLost{Executor: "x", Shuffle: 1, Map: 0, Task: 1}
	w.TaskEnded(w.fetchFailure(reduce, 0, old))
	w.collect()
	w.sets = w.sets[1:] // its other tasks go on
	w.runOne()          // the map task again
	w.TaskEnded(w.fetchFailure(reduce, 1, old))
	w.collect()
	if _, err := w.MapOutputs(1); err != nil {
		t.Errorf("the new output was taken for lost: %v", err)
	}
	for name, lost := range map[string]*msg.FetchLost{
		"of no shuffle":         {Shuffle: 77},
		"below 0":               {Shuffle: 1, Map: -1},
		"beyond the last":       {Shuffle: 1, Map: 1},
		"that nobody can name":  nil,
		"of a task of long ago": {Shuffle: 1, Map: 0, Task: 0},
	} {
		w.TaskEnded(w.fetchFailure(w.sets[0].Stage, 0, lost))
		w.collect()
		w.sets = w.sets[1:]
		if _, err := w.MapOutputs(1); err != nil {
			t.Errorf("a report about an output %s: %v", name, err)
		}
	}
	if ran := w.runAll(); len(ran) != 1 || len(w.ended) != 1 || w.ended[0].Err != nil {
		t.Errorf("in the end %v ran, ended %+v", ran, w.ended)
	}
}

func TestImagesAreReleasedByTheirLastUser(t *testing.T) {
	w := newWorld(t, Config{})
	source := w.define(2)
	reduced := w.define(0, w.shuffle(source, 1))
	w.submit(0, source, 1)
	w.submit(1, source, 1)  // the same image
	w.submit(2, reduced, 2) // kept by the map stage
	w.submit(3, reduced, 3)
	w.CancelJob(0, "test")
	w.collect()
	if len(w.released) > 0 {
		t.Errorf("released %v while job 1 uses it", w.released)
	}
	w.runAll()
	if diff := cmp.Diff([]msg.ImageID{1, 3}, w.released); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
}

func TestAnEmptyParentNeedsNoStage(t *testing.T) {
	w := newWorld(t, Config{})
	w.submit(0, w.define(0, w.shuffle(w.define(0), 2)), 1)
	if ran := w.runAll(); len(ran) != 1 {
		t.Errorf("stages %v ran, want the result stage alone", ran)
	}
	if reply, err := w.MapOutputs(1); err != nil || len(reply.Outputs) != 0 {
		t.Errorf("map outputs of an empty RDD: %v, %v", reply, err)
	}
	if len(w.ended) != 1 || w.ended[0].Err != nil {
		t.Errorf("ended %+v", w.ended)
	}
}

func TestJobErrorsAreOneLineAndKeepTheFailure(t *testing.T) {
	w := newWorld(t, Config{})
	reduced := w.define(0, w.shuffle(w.define(8), 1))
	for i := range msg.JobID(3) {
		w.submit(i, w.define(1), 1)
	}
	w.submit(3, reduced, 1)
	f := &msg.Failure{Kind: msg.FailUser, Message: "panic: first\nsecond", Stack: "main.f()"}
	stage := w.sets[3].Stage.ID
	w.TaskSetFailed(TaskSetFailed{Stage: stage, Partition: 7, Failures: 4, Failure: f})
	w.TaskSetFailed(TaskSetFailed{Stage: stage, Partition: 7, Failures: 4, Failure: f})
	w.CancelJob(1, "interrupted")
	w.CancelJob(1, "interrupted again")
	w.collect()
	if len(w.ended) != 2 {
		t.Fatalf("ended %+v", w.ended)
	}
	const want = "job 3 (count at main.go:12) failed: stage 3 (op at main.go:7) partition 7 failed 4 times; " +
		"last: panic: first | second"
	if got := w.ended[0].Err.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var failure *msg.Failure
	if !errors.As(error(w.ended[0].Err), &failure) || failure != f {
		t.Errorf("the task's failure is not in the error: %v", failure)
	}
	cancelled := w.ended[1].Err
	if !cancelled.Cancelled || errors.As(error(cancelled), &failure) ||
		cancelled.Error() != "job 1 (count at main.go:12) was cancelled: interrupted" {
		t.Errorf("cancelled: %+v", cancelled)
	}
	if w.ended[0].Err.Cancelled {
		t.Error("a failed job says that it was cancelled")
	}
}

func TestWhereNamesWhatIsKnown(t *testing.T) {
	for want, in := range map[string][2]string{
		"":                      {"", ""},
		" (map)":                {"map", ""},
		" (at main.go:9)":       {"", "main.go:9"},
		" (map at main.go:9)":   {"map", "main.go:9"},
		" (map at two\nlines:)": {"map", "two\nlines:"},
	} {
		if got := where(in[0], in[1]); got != want {
			t.Errorf("where(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReportsAboutNothingAreIgnored(t *testing.T) {
	w := newWorld(t, Config{})
	source := w.define(2)
	w.submit(0, w.define(0, w.shuffle(source, 1)), 1)
	map0 := w.sets[0].Stage
	beyond, stranger, early := w.finished(map0, 5), w.finished(map0, 0), w.finished(map0, -1)
	stranger.Stage.Stage = 99
	noOutput := w.finished(map0, 0)
	noOutput.MapOutput = nil
	result := w.finished(msg.Stage{ID: msg.StageAttempt{Stage: 1}}, 3)
	for _, e := range []*TaskEnd{beyond, stranger, early, noOutput, result} {
		w.TaskEnded(e)
	}
	w.TaskSetFailed(TaskSetFailed{Stage: msg.StageAttempt{Stage: 99}})
	w.TaskSetFailed(TaskSetFailed{Stage: msg.StageAttempt{Stage: 0, Attempt: 4}})
	w.ExecutorLost("nobody")
	w.CancelJob(44, "who?")
	if r := w.collect(); !r.Empty() {
		t.Errorf("led to %+v", *r)
	}
	if w.runAll(); len(w.ended) != 1 || w.ended[0].Err != nil {
		t.Errorf("ended %+v", w.ended)
	}
}

func TestAJobNumberIsNotUsedTwiceAtOnce(t *testing.T) {
	w := newWorld(t, Config{})
	w.submit(4, w.define(1), 1)
	err := w.SubmitJob(Job{ID: 4, RDD: 1, Name: "sum"})
	if err == nil || !strings.Contains(err.Error(), "submit job 4 (sum): the number is taken by a running job (count at main.go:12)") {
		t.Errorf("got %v", err)
	}
	if r := w.collect(); !r.Empty() {
		t.Errorf("led to %+v", *r)
	}
}

// TestDeepLineages runs one job over many shuffles in a row, and then loses all.
func TestDeepLineages(t *testing.T) {
	const depth = 20_000
	w := newWorld(t, Config{MaxAttempts: 4})
	rdd := w.define(1)
	for range depth {
		rdd = w.define(0, w.shuffle(rdd, 1))
	}
	w.submit(0, rdd, 1)
	if ran := w.runAll(); len(ran) != depth+1 || len(w.ended) != 1 {
		t.Fatalf("%d stages ran, %d jobs ended", len(ran), len(w.ended))
	}
	w.ExecutorLost("x")
	w.submit(1, rdd, 1)
	w.CancelJob(1, "enough")
	w.collect()
	if len(w.ended) != 2 || len(w.jobs) != 0 {
		t.Errorf("%d jobs ended, %d are left", len(w.ended), len(w.jobs))
	}
}

// TestIterativeJobs runs an action at each step of a growing lineage: each job
// runs its own new stages, and looks at no more than the one before them.
func TestIterativeJobs(t *testing.T) {
	const rounds = 5_000
	w := newWorld(t, Config{})
	rdd := w.define(1)
	for i := range msg.JobID(rounds) {
		for range 10 {
			rdd = w.define(0, oneToOne(rdd))
		}
		rdd = w.define(0, w.shuffle(rdd, 1))
		w.submit(i, rdd, msg.ImageID(i))
		started := w.events[0].(event.JobStarted)
		if want := min(int(i)+2, 3); len(started.Stages) != want {
			t.Fatalf("job %d lists %d stages, want %d", i, len(started.Stages), want)
		}
		if ran := w.runAll(); len(ran) != 2 {
			t.Fatalf("job %d ran %v", i, ran)
		}
		w.events = w.events[:0]
	}
	if len(w.ended) != rounds {
		t.Errorf("%d jobs ended", len(w.ended))
	}
}

// However reports come together, results over the limit fail the job, and nothing
// of the one that exceeds it is delivered.
func TestResultsOverTheLimitFailTheJob(t *testing.T) {
	w := newWorld(t, Config{MaxResultSize: 10})
	w.submit(0, w.define(3), 1)
	stage := w.sets[0].Stage
	for p := range 3 {
		end := w.finished(stage, p)
		end.Result = [][]byte{[]byte("four"), nil}
		w.TaskEnded(end)
	}
	w.collect()
	if len(w.results) != 2 || len(w.ended) != 1 || w.ended[0].Err == nil {
		t.Fatalf("%d results, ended: %v", len(w.results), w.ended)
	}
	want := "job 0 (count at main.go:12) failed: its results are 12 B so far and 10 B are allowed: " +
		"collect less, save it with SaveAsTextFile, or raise quern.driver.maxResultSize"
	if got := w.ended[0].Err.Error(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
