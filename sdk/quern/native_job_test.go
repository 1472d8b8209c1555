//go:build !wasip1

package quern

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/sdk/abi"
)

// world is an evaluator whose tasks are functions of the test.
type world struct {
	t *testing.T
	e *evaluator
	// task does the work of a task and answers what the task entry does.
	task func(t *nativeTask, kind abi.TaskKind, id uint32, partition int) error
	// ran lists the tasks in order, such as "shuffle 1/0" or "action 7/2".
	ran []string
}

func newWorld(t *testing.T, conf map[string]string) *world {
	t.Helper()
	w := &world{t: t}
	w.e = newEvaluator(w.run)
	if err := w.e.open(&abi.ContextDesc{Version: abi.Version, Conf: conf}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) run(kind abi.TaskKind, id, partition uint32) int64 {
	task := native.task.Load()
	name := "action"
	if kind == abi.TaskShuffle {
		name = "shuffle"
	}
	w.ran = append(w.ran, fmt.Sprintf("%s %d/%d", name, id, partition))
	if err := w.task(task, kind, id, int(partition)); err != nil {
		task.fail(err.Error())
		return int64(abi.ErrUser)
	}
	return 0
}

func (w *world) define(d abi.RDDDesc) int {
	w.t.Helper()
	n, err := w.e.define(&d)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// collect runs a job and answers its results joined.
func (w *world) collect(d abi.JobDesc) (string, error) {
	j, err := w.e.newJob(&d)
	if err != nil {
		return "", err
	}
	defer j.close()
	var all []byte
	buf := make([]byte, 4)
	for {
		n, err := j.nextResults(buf)
		if err != nil || n == 0 {
			return string(all), err
		}
		if n > len(buf) {
			buf = make([]byte, n)
			continue
		}
		all = append(all, buf[:n]...)
	}
}

// output writes batches to the port and closes it.
func output(t *nativeTask, kind abi.PortKind, id uint32, batches ...string) error {
	port, err := t.open(kind, id, t.partition)
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := t.write(port, []byte(b)); err != nil {
			return err
		}
	}
	return t.close(port)
}

// numbers says which partition it is.
func numbers(t *nativeTask, _ abi.TaskKind, id uint32, partition int) error {
	return output(t, abi.PortResult, id, fmt.Sprintf("<%d", partition), "", ">")
}

func shuffleDep(parent, id uint32, partitions int) []abi.DepDesc {
	return []abi.DepDesc{{Parent: parent, Kind: abi.DepShuffle, Shuffle: &abi.ShuffleDesc{
		ID: id, Partitioner: abi.PartitionHash, Partitions: partitions,
	}}}
}

func TestResultsComeInTheOrderOfTheWantedPartitions(t *testing.T) {
	w := newWorld(t, nil)
	w.task = numbers
	w.define(abi.RDDDesc{ID: 1, Partitions: 4})
	for want, partitions := range map[string][]int{"<0><1><2><3>": nil, "<2><0>": {2, 0}} {
		got, err := w.collect(abi.JobDesc{RDD: 1, Action: 7, Partitions: partitions})
		if err != nil || got != want {
			t.Errorf("partitions %v: results %q and error %v, want %q", partitions, got, err, want)
		}
	}
}

func TestPartitionsRunOnlyWhenTheirResultsAreAskedFor(t *testing.T) {
	w := newWorld(t, nil)
	w.task = numbers
	w.define(abi.RDDDesc{ID: 1, Partitions: 100})
	j, err := w.e.newJob(&abi.JobDesc{RDD: 1, Action: 7})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	for range 2 {
		if _, err := j.nextResults(buf); err != nil {
			t.Fatal(err)
		}
	}
	j.close()
	if n, err := j.nextResults(buf); n != 0 || err != nil {
		t.Errorf("a closed job answers %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"action 7/0", "action 7/1"}, w.ran); diff != "" {
		t.Error("tasks (-want +got):\n" + diff)
	}
}

func TestAJobWithoutResultsStillRunsEveryPartition(t *testing.T) {
	w := newWorld(t, nil)
	w.task = func(*nativeTask, abi.TaskKind, uint32, int) error { return nil }
	w.define(abi.RDDDesc{ID: 1, Partitions: 3})
	w.define(abi.RDDDesc{ID: 2})
	for _, rdd := range []uint32{1, 2} {
		if got, err := w.collect(abi.JobDesc{RDD: rdd}); got != "" || err != nil {
			t.Errorf("results %q, error %v", got, err)
		}
	}
	if len(w.ran) != 3 {
		t.Errorf("ran %v, want 3 tasks", w.ran)
	}
}

// copyShuffles makes each map task write one record, and each result task read
// partition by partition what the shuffles have.
func copyShuffles(t *nativeTask, kind abi.TaskKind, id uint32, partition int) error {
	if kind == abi.TaskShuffle {
		record := appendRecord(nil, keyValue{fmt.Sprint(id), fmt.Sprint(partition)})
		return output(t, abi.PortShuffleWrite, id, string(record))
	}
	var sum []byte
	for _, s := range t.job.inputs {
		port, err := t.open(abi.PortShuffleRead, s.desc.ID, partition)
		if err != nil {
			return err
		}
		b, err := readPort(t.ports[port].(nativeReader), 9)
		if err != nil {
			return err
		}
		sum = append(sum, b...)
	}
	return output(t, abi.PortResult, id, string(sum))
}

func TestMapStagesRunOnceAndBeforeThoseThatReadThem(t *testing.T) {
	w := newWorld(t, nil)
	w.task = copyShuffles
	w.define(abi.RDDDesc{ID: 1, Partitions: 2})
	w.define(abi.RDDDesc{ID: 2, Deps: shuffleDep(1, 1, 1)})
	w.define(abi.RDDDesc{ID: 3, Deps: shuffleDep(2, 2, 1)})
	w.define(abi.RDDDesc{ID: 4, Deps: []abi.DepDesc{
		{Parent: 3, Kind: abi.DepOneToOne}, {Parent: 3, Kind: abi.DepOneToOne}, shuffleDep(1, 3, 1)[0], shuffleDep(1, 3, 1)[0],
	}})
	first, err := w.collect(abi.JobDesc{RDD: 4, Action: 7})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"shuffle 1/0", "shuffle 1/1", "shuffle 2/0", "shuffle 3/0", "shuffle 3/1", "action 7/0"}
	if diff := cmp.Diff(want, w.ran); diff != "" {
		t.Error("tasks (-want +got):\n" + diff)
	}
	w.ran = nil
	second, err := w.collect(abi.JobDesc{RDD: 4, Action: 8})
	if err != nil || second != first {
		t.Errorf("the second time %q and error %v, want %q", second, err, first)
	}
	if diff := cmp.Diff([]string{"action 8/0"}, w.ran); diff != "" {
		t.Error("tasks of the second job (-want +got):\n" + diff)
	}
}

func TestANewContextComputesShufflesAnewAlsoBetweenTwoResults(t *testing.T) {
	w := newWorld(t, nil)
	w.task = copyShuffles
	w.define(abi.RDDDesc{ID: 1, Partitions: 2})
	w.define(abi.RDDDesc{ID: 2, Deps: shuffleDep(1, 1, 4)})
	want, err := w.collect(abi.JobDesc{RDD: 2, Action: 7})
	if err != nil {
		t.Fatal(err)
	}
	j, err := w.e.newJob(&abi.JobDesc{RDD: 2, Action: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	var got string
	buf := make([]byte, 100)
	for {
		if err := w.e.open(&abi.ContextDesc{Version: abi.Version}); err != nil {
			t.Fatal(err)
		}
		if len(w.e.shuffles[1].parts) > 0 {
			t.Error("records of an old context are kept")
		}
		n, err := j.nextResults(buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		got += string(buf[:n])
	}
	if got != want {
		t.Errorf("results %q, want %q", got, want)
	}
}

func TestAFailedTaskFailsItsJobWithThePlace(t *testing.T) {
	w := newWorld(t, nil)
	w.define(abi.RDDDesc{ID: 1, Name: "map", CallSite: "main.go:3", Partitions: 2})
	w.define(abi.RDDDesc{ID: 2, Deps: shuffleDep(1, 1, 1)})
	fail := errors.New("no such word")
	w.task = func(t *nativeTask, kind abi.TaskKind, id uint32, partition int) error {
		if fail != nil && partition == 1 {
			return fail
		}
		return copyShuffles(t, kind, id, partition)
	}
	job := abi.JobDesc{RDD: 2, Action: 7, Name: "collect", CallSite: "main.go:5"}
	j, err := w.e.newJob(&job)
	if err != nil {
		t.Fatal(err)
	}
	want := "job 0 (collect at main.go:5) failed: stage 0 (map at main.go:3) partition 1 failed: no such word"
	for range 2 { // asking again gives the same answer
		if _, err := j.nextResults(nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	// The stage begins anew, with all its tasks: none of its records is twice.
	fail = nil
	got, err := w.collect(job)
	if err != nil {
		t.Fatal(err)
	}
	both := appendRecord(appendRecord(nil, keyValue{"1", "0"}), keyValue{"1", "1"})
	if got != string(both) {
		t.Errorf("after the failure %q, want %q", got, both)
	}
}

func TestATaskThatDoesNotEndAsItShouldFails(t *testing.T) {
	for name, c := range map[string]struct {
		task func(t *nativeTask, _ abi.TaskKind, id uint32, _ int) error
		want string
	}{
		"ends its goroutine": {
			func(*nativeTask, abi.TaskKind, uint32, int) error { runtime.Goexit(); return nil },
			"gave no reason",
		},
		"gives its reason and ends its goroutine": {
			func(t *nativeTask, _ abi.TaskKind, _ uint32, _ int) error {
				t.fail("enough")
				runtime.Goexit()
				return nil
			},
			"enough",
		},
		"leaves its output open": {
			func(t *nativeTask, _ abi.TaskKind, id uint32, _ int) error {
				_, err := t.open(abi.PortResult, id, 0)
				return err
			},
			"without opening and closing its output port",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.task = c.task
			w.define(abi.RDDDesc{ID: 1, Partitions: 1})
			if _, err := w.collect(abi.JobDesc{RDD: 1, Action: 7}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if native.task.Load() != nil {
				t.Error("the task is still there")
			}
		})
	}
}

func TestATaskMustDeliverWhatItsStageIsFor(t *testing.T) {
	t.Chdir(t.TempDir())
	w := newWorld(t, nil)
	w.task = func(*nativeTask, abi.TaskKind, uint32, int) error { return nil }
	w.define(abi.RDDDesc{ID: 1, Partitions: 1})
	w.define(abi.RDDDesc{ID: 2, Deps: shuffleDep(1, 1, 1)})
	for name, job := range map[string]abi.JobDesc{"shuffle": {RDD: 2}, "file": {RDD: 1, Sink: &abi.SinkDesc{Path: "out"}}} {
		if _, err := w.collect(job); err == nil || !strings.Contains(err.Error(), "without opening and closing") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPortsCheckTheirUse(t *testing.T) {
	w := newWorld(t, nil)
	w.define(abi.RDDDesc{ID: 1, Partitions: 1})
	w.task = func(task *nativeTask, _ abi.TaskKind, id uint32, _ int) error {
		refuse := func(err error, want string) {
			t.Helper()
			var coded *nativeError
			if !errors.As(err, &coded) || coded.code != abi.ErrBadArgument || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want a bad argument with %q", err, want)
			}
		}
		open := func(kind abi.PortKind, id uint32) error { _, err := task.open(kind, id, 0); return err }
		refuse(open(abi.PortText, 1), "RDD 1 has no text partition 0")
		refuse(open(abi.PortShuffleRead, 9), "shuffle 9 has no partition 0")
		refuse(open(abi.PortResult, 8), "8 is not what this task writes")
		port, err := task.open(abi.PortResult, id, 0)
		if err != nil {
			return err
		}
		refuse(open(abi.PortResult, id), "has opened its output port already")
		_, err = task.read(port, nil)
		refuse(err, "is an output")
		refuse(task.write(port+1, nil), "is not open")
		refuse(task.write(-1, nil), "is not open")
		if err := task.close(port); err != nil {
			return err
		}
		refuse(task.close(port), "is not open")
		return nil
	}
	// A task that goes on after a port failed has failed all the same.
	if _, err := w.collect(abi.JobDesc{RDD: 1, Action: 7}); err == nil || !strings.Contains(err.Error(), "no text partition 0") {
		t.Errorf("error %v", err)
	}
	for _, kind := range []abi.PortKind{abi.PortSink, abi.PortShuffleWrite, 99} {
		w.task = func(t *nativeTask, _ abi.TaskKind, id uint32, _ int) error { return output(t, kind, id) }
		if _, err := w.collect(abi.JobDesc{RDD: 1, Action: 7}); err == nil || !strings.Contains(err.Error(), "no port of kind") {
			t.Errorf("kind %d: error %v", kind, err)
		}
	}
}

func TestTasksKnowWhatTheyAreAndSeedsDifferAndRepeat(t *testing.T) {
	run := func(conf map[string]string) [][abi.TaskInfoWords]uint64 {
		w := newWorld(t, conf)
		var infos [][abi.TaskInfoWords]uint64
		w.task = func(t *nativeTask, kind abi.TaskKind, id uint32, partition int) error {
			infos = append(infos, t.info())
			return copyShuffles(t, kind, id, partition)
		}
		w.define(abi.RDDDesc{ID: 1, Partitions: 2})
		w.define(abi.RDDDesc{ID: 2, Deps: shuffleDep(1, 1, 2)})
		for range 2 {
			if _, err := w.collect(abi.JobDesc{RDD: 2}); err != nil {
				t.Fatal(err)
			}
		}
		return infos
	}
	infos := run(nil)
	type at struct{ job, stage, partition uint64 }
	var got []at
	seeds := map[uint64]bool{}
	for _, i := range infos {
		got = append(got, at{i[abi.InfoJob], i[abi.InfoStage], i[abi.InfoPartition]})
		seeds[i[abi.InfoSeed]] = true
	}
	want := []at{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {1, 2, 0}, {1, 2, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("tasks %v, want %v", got, want)
	}
	if len(seeds) != len(infos) {
		t.Errorf("%d different seeds for %d tasks", len(seeds), len(infos))
	}
	if diff := cmp.Diff(infos, run(map[string]string{"quern.seed": "0"})); diff != "" {
		t.Error("again with the same seed (-first +second):\n" + diff)
	}
	for _, i := range run(map[string]string{"quern.seed": "1"}) {
		if seeds[i[abi.InfoSeed]] {
			t.Error("another quern.seed gives a task the same seed")
		}
	}
}

func TestPartitionsAreDerivedFromDependencies(t *testing.T) {
	writeFiles(t, map[string]string{"in/a": strings.Repeat("x", 10), "in/b": strings.Repeat("x", 10)})
	w := newWorld(t, map[string]string{"quern.files.maxPartitionBytes": "8"})
	for _, c := range []struct {
		desc abi.RDDDesc
		want int
	}{
		{abi.RDDDesc{ID: 1, Partitions: 3}, 3},
		{abi.RDDDesc{ID: 2}, 0},
		{abi.RDDDesc{ID: 3, Text: &abi.TextDesc{Paths: []string{"in"}}}, 3},
		{abi.RDDDesc{ID: 4, Text: &abi.TextDesc{Paths: []string{"in/a"}, MinPartitions: 5}}, 5},
		{abi.RDDDesc{ID: 5, Deps: []abi.DepDesc{{Parent: 1, Kind: abi.DepOneToOne}}}, 3},
		{abi.RDDDesc{ID: 6, Deps: []abi.DepDesc{
			{Parent: 1, Kind: abi.DepRange}, {Parent: 2, Kind: abi.DepRange, Start: 3}, {Parent: 4, Kind: abi.DepRange, Start: 3}}}, 8},
		{abi.RDDDesc{ID: 7, Partitions: 2, Deps: []abi.DepDesc{{Parent: 6, Kind: abi.DepCoalesce}}}, 2},
		{abi.RDDDesc{ID: 8, Deps: shuffleDep(7, 1, 6)}, 6},
		{abi.RDDDesc{ID: 9, Deps: append(shuffleDep(7, 2, 3), abi.DepDesc{Parent: 5, Kind: abi.DepOneToOne})}, 3},
		{abi.RDDDesc{ID: 10, Deps: []abi.DepDesc{{Parent: 2, Kind: abi.DepOneToOne}}}, 0},
	} {
		if got := w.define(c.desc); got != c.want {
			t.Errorf("RDD %d has %d partitions, want %d", c.desc.ID, got, c.want)
		}
	}
}

func TestDescriptionsThatDoNotFitTogetherAreRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.define(abi.RDDDesc{ID: 1, Name: "range", CallSite: "main.go:1", Partitions: 3})
	w.define(abi.RDDDesc{ID: 2, Partitions: 2})
	w.define(abi.RDDDesc{ID: 3, Deps: shuffleDep(1, 1, 2)})
	one := func(parent uint32, kind abi.DepKind) []abi.DepDesc {
		return []abi.DepDesc{{Parent: parent, Kind: kind}}
	}
	shuffle := func(d abi.ShuffleDesc) []abi.DepDesc {
		return []abi.DepDesc{{Parent: 1, Kind: abi.DepShuffle, Shuffle: &d}}
	}
	for want, d := range map[string]abi.RDDDesc{
		"numbered from 1":                  {},
		"another RDD (range at main.go:1)": {ID: 1},
		"-1 partitions":                    {ID: 9, Partitions: -1},
		"no RDD 8":                         {ID: 9, Deps: one(8, abi.DepOneToOne)},
		"unknown kind of dependency 77":    {ID: 9, Deps: one(1, 77)},
		"no number of partitions":          {ID: 9, Deps: one(1, abi.DepCoalesce)},
		"3 partitions by one account":      {ID: 9, Deps: append(one(1, abi.DepOneToOne), one(2, abi.DepOneToOne)...)},
		"4 partitions by one account":      {ID: 9, Partitions: 4, Deps: one(1, abi.DepRange)},
		"the one before it ends at 3":      {ID: 9, Deps: append(one(1, abi.DepRange), one(2, abi.DepRange)...)},
		"ranges among":                     {ID: 9, Deps: append(one(1, abi.DepRange), one(2, abi.DepCoalesce)...), Partitions: 3},
		"without a shuffle":                {ID: 9, Deps: one(1, abi.DepShuffle)},
		"shuffles are numbered":            {ID: 9, Deps: shuffle(abi.ShuffleDesc{})},
		"into 0 partitions":                {ID: 9, Deps: shuffle(abi.ShuffleDesc{ID: 5})},
		"unknown kind of partitioner 0":    {ID: 9, Deps: shuffle(abi.ShuffleDesc{ID: 5, Partitions: 1})},
		"1 bounds for 1 partitions":        {ID: 9, Deps: shuffle(abi.ShuffleDesc{ID: 5, Partitions: 1, Partitioner: abi.PartitionRange, Bounds: [][]byte{{1}}})},
		"do not ascend":                    {ID: 9, Deps: shuffle(abi.ShuffleDesc{ID: 5, Partitions: 3, Partitioner: abi.PartitionRange, Bounds: [][]byte{{2}, {1}}})},
		"shuffle 1 is of RDD 1":            {ID: 9, Deps: shuffleDep(2, 1, 2)},
		"cannot depend on other RDDs":      {ID: 9, Text: &abi.TextDesc{}, Deps: one(1, abi.DepOneToOne)},
		"no path was given":                {ID: 9, Text: &abi.TextDesc{}},
		"nowhere*: no file matches":        {ID: 9, Text: &abi.TextDesc{Paths: []string{"nowhere*"}}},
	} {
		if _, err := w.e.define(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if d.ID == 9 && w.e.rdds[9] != nil {
			t.Fatalf("refused for %q and defined all the same", want)
		}
	}
	if len(w.e.shuffles) != 1 {
		t.Errorf("%d shuffles, want 1", len(w.e.shuffles))
	}
	for want, d := range map[string]abi.JobDesc{
		"no RDD 9":                  {RDD: 9, Name: "count", CallSite: "main.go:7"},
		"partition 3 of 3":          {RDD: 1, Partitions: []int{0, 3}},
		"partition -1 of 3":         {RDD: 1, Partitions: []int{-1}},
		"wanted twice":              {RDD: 1, Partitions: []int{1, 1}},
		"the path is empty":         {RDD: 1, Sink: &abi.SinkDesc{}},
		`unknown compression "lz4"`: {RDD: 1, Sink: &abi.SinkDesc{Path: "out", Compression: "lz4"}},
		"use quern run":             {RDD: 1, Sink: &abi.SinkDesc{Path: "out", Compression: "zstd"}},
	} {
		if _, err := w.e.newJob(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for want, d := range map[string]abi.ContextDesc{
		"ABI version 99":                {Version: 99},
		`unknown key "spark.app.name"`:  {Version: abi.Version, Conf: map[string]string{"spark.app.name": "x"}},
		"quern.seed":                    {Version: abi.Version, Conf: map[string]string{"quern.seed": "-1"}},
		"quern.files.maxPartitionBytes": {Version: abi.Version, Conf: map[string]string{"quern.files.maxPartitionBytes": "0"}},
	} {
		if err := newEvaluator(nil).open(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for s, want := range map[string]int64{"1": 1, "32m": 32 << 20, "4K": 4096, "2g": 2 << 30, "1t": 1 << 40} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("size %q is %d and error %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "m", "1kk", "-1k", "0", "1x", "9000000t", "1.5g"} {
		if n, err := parseSize(s); err == nil {
			t.Errorf("size %q is %d, want an error", s, n)
		}
	}
}

// saveNumbers writes a line for each partition but the second, which stays
// empty.
func saveNumbers(t *nativeTask, _ abi.TaskKind, id uint32, partition int) error {
	if partition == 1 {
		return output(t, abi.PortSink, id)
	}
	return output(t, abi.PortSink, id, fmt.Sprintf("line %d", partition), "\n")
}

// folder lists all files below dir with their contents, unpacked.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return err
			}
		}
		content, err := io.ReadAll(r)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSavedOutputIsOneFileAPartitionAndAMark(t *testing.T) {
	for compression, suffix := range map[string]string{"": "", "gzip": ".gz"} {
		t.Run("compression "+compression, func(t *testing.T) {
			t.Chdir(t.TempDir())
			w := newWorld(t, nil)
			w.task = saveNumbers
			w.define(abi.RDDDesc{ID: 1, Partitions: 3})
			_, err := w.collect(abi.JobDesc{RDD: 1, Action: 7, Sink: &abi.SinkDesc{Path: "new/out/", Compression: compression}})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				"new/out/_SUCCESS":            "",
				"new/out/part-00000" + suffix: "line 0\n",
				"new/out/part-00001" + suffix: "",
				"new/out/part-00002" + suffix: "line 2\n",
			}
			if diff := cmp.Diff(want, folder(t, ".")); diff != "" {
				t.Error("files (-want +got):\n" + diff)
			}
			if runtime.GOOS != "windows" {
				info, err := os.Stat("new/out")
				plain, err2 := os.Stat("new")
				if err != nil || err2 != nil || info.Mode() != plain.Mode() {
					t.Errorf("the folder's mode is not that of a new folder: %v, %v, %v", info.Mode(), err, err2)
				}
			}
			if entries, err := os.ReadDir("new"); err != nil || len(entries) != 1 {
				t.Errorf("next to the output lie %v (error %v)", entries, err)
			}
		})
	}
}

func TestNothingHalfWrittenIsLeft(t *testing.T) {
	w := newWorld(t, nil)
	w.define(abi.RDDDesc{ID: 1, Partitions: 3})
	job := abi.JobDesc{RDD: 1, Action: 7, Sink: &abi.SinkDesc{Path: "out"}}
	left := func(t *testing.T) {
		t.Helper()
		if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v (error %v)", entries, err)
		}
	}
	t.Run("by a failed task", func(t *testing.T) {
		t.Chdir(t.TempDir())
		w.task = func(t *nativeTask, kind abi.TaskKind, id uint32, partition int) error {
			if partition == 2 {
				return errors.New("broken")
			}
			return saveNumbers(t, kind, id, partition)
		}
		if _, err := w.collect(job); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("error %v", err)
		}
		left(t)
	})
	t.Run("by a job that is closed early", func(t *testing.T) {
		t.Chdir(t.TempDir())
		w.task = saveNumbers
		j, err := w.e.newJob(&job)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.step(); err != nil {
			t.Fatal(err)
		}
		j.close()
		left(t)
	})
}

func TestAnExistingTargetIsRefusedAndStaysAsItIs(t *testing.T) {
	writeFiles(t, map[string]string{"out/precious": "data"})
	w := newWorld(t, nil)
	w.define(abi.RDDDesc{ID: 1, Partitions: 1})
	w.task = saveNumbers
	if _, err := w.collect(abi.JobDesc{RDD: 1, Sink: &abi.SinkDesc{Path: "out"}}); err == nil || !strings.Contains(err.Error(), "save to out: it exists already") {
		t.Errorf("error %v", err)
	}
	if len(w.ran) > 0 {
		t.Errorf("ran %v before refusing", w.ran)
	}
	// Somebody else may make one while the job runs.
	w.task = func(t *nativeTask, kind abi.TaskKind, id uint32, partition int) error {
		return errors.Join(os.Mkdir("late", 0o777), saveNumbers(t, kind, id, partition))
	}
	if _, err := w.collect(abi.JobDesc{RDD: 1, Sink: &abi.SinkDesc{Path: "late"}}); err == nil || !strings.Contains(err.Error(), "save to late: it exists already") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"out/precious": "data"}, folder(t, ".")); diff != "" {
		t.Error("files (-want +got):\n" + diff)
	}
}

func TestTextReachesItsTask(t *testing.T) {
	writeFiles(t, map[string]string{"in": "a\nbc\n"})
	w := newWorld(t, nil)
	w.define(abi.RDDDesc{ID: 1, Text: &abi.TextDesc{Paths: []string{"in"}, MinPartitions: 3}})
	w.task = func(t *nativeTask, _ abi.TaskKind, id uint32, partition int) error {
		port, err := t.open(abi.PortText, 1, partition)
		if err != nil {
			return err
		}
		b, err := readPort(t.ports[port].(nativeReader), 100)
		if err != nil {
			return err
		}
		return output(t, abi.PortResult, id, string(b)+"|")
	}
	want := string(binary.AppendUvarint(nil, 1)) + "a|" + string(binary.AppendUvarint(nil, 2)) + "bc||"
	if got, err := w.collect(abi.JobDesc{RDD: 1}); err != nil || got != want {
		t.Errorf("results %q and error %v, want %q", got, err, want)
	}
}
