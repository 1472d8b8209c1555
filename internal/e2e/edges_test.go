package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What actions make of no elements, and of fewer elements than partitions.
func TestEdges(t *testing.T) {
	t.Parallel()
	const (
		none = `collect [] <nil>
count 0 <nil>
first 0 first at <edges> of an empty RDD
take [] <nil>
reduce 0 reduce at <edges> of an empty RDD
fold 0 <nil>
max 0 max at <edges> of an empty RDD
min 0 min at <edges> of an empty RDD
sum 0 <nil>
top [] <nil>
takeOrdered [] <nil>
isEmpty true <nil>
countByValue map[] <nil>
countByKey map[] <nil>
collectAsMap map[] <nil>
reduceByKey [] <nil>
groupByKey 0 <nil>
join 0 <nil>
union 0 <nil>
distinct [] <nil>
sortBy [] <nil>
foreach <nil>
`
		two = `collect [0 1] <nil>
count 2 <nil>
first 0 <nil>
take [0 1] <nil>
reduce 1 <nil>
fold 1 <nil>
max 1 <nil>
min 0 <nil>
sum 1 <nil>
top [1 0] <nil>
takeOrdered [0 1] <nil>
isEmpty false <nil>
countByValue map[0:1 1:1] <nil>
countByKey map[0:1 1:1] <nil>
collectAsMap map[0:0 1:1] <nil>
reduceByKey [(0,0) (1,1)] <nil>
groupByKey 2 <nil>
join 2 <nil>
union 4 <nil>
distinct [0 1] <nil>
sortBy [0 1] <nil>
foreach <nil>
`
	)
	r := runGuest(t, t.TempDir(), []string{"--master", "local[2]"}, "faults", "edges")
	compare(t, "stdout", none+none+none+two+two, legible(t, "faults", r.stdout))
	if r.code != 0 || r.stderr != "" {
		t.Errorf("exit code %d, stderr %q", r.code, r.stderr)
	}
}

// One record of any size moves through tasks, a shuffle and to the driver, or the
// error says which memory is too small for it.
func TestRecordsOfAllSizes(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		size  int
		flags []string
		want  string // of the error, if there is to be one
	}{
		"nothing":              {0, nil, ""},
		"a byte":               {1, nil, ""},
		"almost a batch":       {65_535, nil, ""},
		"a batch":              {65_536, nil, ""},
		"1 MiB":                {mib, nil, ""},
		"1 MiB, little memory": {mib, []string{"--task-memory", "16m", "--executor-memory", "32m"}, ""},
		"100 MiB":              {100 * mib, []string{"--task-memory", "1g", "--executor-memory", "2g"}, ""},
		"100 MiB, not packed": {100 * mib, []string{"--task-memory", "1g", "--executor-memory", "2g",
			"--conf", "quern.shuffle.compress=false"}, ""},
		"too large for a task": {100 * mib, []string{"--task-memory", "64m"},
			"failed: stage 0 (map at <records>) partition 5 failed: out of memory: the task's memory is N MiB, wanted 100 MiB more, " +
				"and the limit is 64 MiB: make partitions smaller (more of them), or raise --task-memory (quern.task.memory)\n"},
		"too large for the executor": {100 * mib, []string{"--task-memory", "1g", "--executor-memory", "256m"},
			"failed: stage 0 (map at <records>) partition 5 failed: task 5: over its share of the executor's memory " +
				"(256 MiB, shared by 1 running tasks): it uses N MiB and needs another 100 MiB: " +
				"raise --executor-memory (quern.executor.memory), run fewer tasks at a time, or use more partitions\n"},
		"too large for the driver": {100 * mib, []string{"--task-memory", "1g", "--executor-memory", "2g", "--conf", "quern.driver.memory=64m"},
			"quern run: out of memory: the driver's memory is N MiB, wanted 101 MiB more, and the limit is 64 MiB: " +
				"keep less in the driver, or raise it with --conf quern.driver.memory=SIZE\n"},
		"too large for a result": {100 * mib, []string{"--task-memory", "1g", "--executor-memory", "2g", "--conf", "quern.driver.maxResultSize=64m"},
			"quern.driver.maxResultSize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runGuest(t, t.TempDir(), slices.Concat([]string{"--master", "local[1]"}, c.flags), "faults", "record", fmt.Sprint(c.size))
			if c.want == "" {
				if want := fmt.Sprintf("3 elements, %d bytes\n", c.size+len("small")*2); r != (result{stdout: want}) {
					t.Errorf("%+v, want %s", r, want)
				}
				return
			}
			if stderr := legible(t, "faults", r.stderr); r.code != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d", r.code)
				compare(t, "stderr", c.want, stderr)
			}
		})
	}
}

// TestGarbageDoesNotFillAShare: tasks that hold little but throw away much get by
// with their share of an executor that is much smaller than the limit of a task.
func TestGarbageDoesNotFillAShare(t *testing.T) {
	r := runGuest(t, t.TempDir(), []string{"--master", "local[2]", "--executor-memory", "24m"}, "faults", "shuffle", "100000000")
	if r.code != 0 || r.stdout != "97656 elements\n" {
		t.Errorf("it ends with exit code %d and prints %q and\n%s", r.code, r.stdout, r.stderr)
	}
}
