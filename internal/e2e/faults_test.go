package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The failure of a task in the job faults, up to its reason, on one slot.
const ofATask = "job 0 (count at <of a task>) failed: stage 0 (map at <of a task>) partition 1 failed: "

// taskFaults has what is said of each way in which a task goes wrong: the reason,
// then the user's frames of its stack.
var taskFaults = map[string]string{
	"panic": "map at <of a task>: panic: element 2 is bad | and has two lines\n" +
		"\tmain.panicking(...)\n\t\t<panics here>\n\tmain.init.func(...)\n\t\t<panicking(i)>",
	"panic-error": "map at <of a task>: panic: reading the record: file does not exist\n" +
		"\tmain.init.func(...)\n\t\t<panic(fmt.Errorf(\"reading the record: %w\", os.ErrNotExist))>",
	"nil-map": "map at <of a task>: panic: assignment to entry in nil map\n" +
		"\tmain.init.func(...)\n\t\t<table[i] = i>",
	"nil-pointer": "map at <of a task>: panic: runtime error: invalid memory address or nil pointer dereference\n" +
		"\tmain.init.func(...)\n\t\t<return p.Unix()>",
	"index": "map at <of a task>: panic: runtime error: index out of range [7] with length 3\n" +
		"\tmain.init.func(...)\n\t\t<return []int64{1, 2, 3}[i+5]>",
	"division": "map at <of a task>: panic: runtime error: integer divide by zero\n" +
		"\tmain.init.func(...)\n\t\t<return i / zero>",
	"goexit": "map at <of a task>: a closure called runtime.Goexit (t.FailNow and t.Fatal do, too): panic instead\n" +
		"\tmain.init.func(...)\n\t\t<runtime.Goexit()>",

	// Go's runtime ends the program in these ways, and no code of the SDK runs.
	"goroutine-panic": "panic: element 2 is bad | and has two lines\n" +
		"\tmain.panicking(...)\n\t\t<panics here>\n\tcreated by main.init.func in goroutine 1\n\t\t<go panicking(i)>",
	"map-race": "fatal error: concurrent map writes\n" +
		"\tmain.init.func()\n\t\t<m[j] = i>\n\tcreated by main.init.func in goroutine 1\n\t\t<go func() {>",
	"deadlock": "fatal error: all goroutines are asleep - deadlock!\n" +
		"\tmain.init.func(...)\n\t\t<<-make(chan int)>",

	"exit": "the task ended its program with exit code 3 (os.Exit, log.Fatal): panic instead; " +
		"it printed last: about to leave",
	"exit-0": "the task ended its program with exit code 0 (os.Exit, log.Fatal): panic instead",
	"fatal": "the task ended its program with exit code 1 (os.Exit, log.Fatal): panic instead; " +
		"it printed last: DATE cannot go on with 2",

	"memory": "out of memory: the task's memory is N MiB, wanted 1.0 MiB more, and the limit is 64 MiB: " +
		"make partitions smaller (more of them), or raise --task-memory (quern.task.memory)\n" +
		"\tmain.init.func(...)\n\t\t<sink = make([]byte, 1<<20)>",
	"memory-at-once": "out of memory: the task's memory is N MiB, wanted 1.0 GiB more, and the limit is 64 MiB: " +
		"make partitions smaller (more of them), or raise --task-memory (quern.task.memory)\n" +
		"\tmain.init.func(...)\n\t\t<sink = make([]byte, 1<<30)>",
	"recursion": "stack overflow: the guest's calls take N MiB of stack, the limit is 16 MiB, mostly in main.endless: " +
		"is there endless recursion? If not, raise --conf quern.task.stackSize=SIZE\n" +
		"\tmain.endless (N times)",
}

// printed is what tasks print before they go wrong. It goes to the log.
var printed = map[string]string{
	"exit":            "about to leave",
	"fatal":           "DATE cannot go on with 2",
	"goroutine-panic": "before the end",
}

func TestATaskThatGoesWrongSaysHowAndWhere(t *testing.T) {
	for way, reason := range taskFaults {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := runGuest(t, t.TempDir(), []string{"--master", "local[1]", "--task-memory", "64m"}, "faults", way)
			if r.code != 1 || r.stdout != "0 elements\n" {
				t.Errorf("exit code %d, stdout %q", r.code, r.stdout)
			}
			want := ofATask + reason + "\n"
			if p := printed[way]; p != "" {
				want = "INFO " + p + " task=\"partition 1 of count (stage 0.0, attempt 1)\"\n" + want
			}
			compare(t, "stderr", want, legible(t, "faults", r.stderr))
		})
	}
}

// Whatever becomes of a job, the process survives it, gives its memory back, and
// runs the next. Memory that stayed with only one of the failed tasks would not
// leave enough for the others.
func TestOtherJobsGoOn(t *testing.T) {
	t.Parallel()
	ways := slices.Sorted(maps.Keys(taskFaults))
	for range 4 {
		ways = append(ways, "memory", "recursion")
	}
	r := runGuest(t, t.TempDir(), []string{"--master", "local[2]", "--task-memory", "64m", "--executor-memory", "100m"},
		"faults", "goes-on", strings.Join(ways, ","))
	want := ""
	for _, way := range ways {
		reason, _, _ := strings.Cut(taskFaults[way], "\n")
		want += fmt.Sprintf("%s: %s\n1000 <nil>\n", way, reason)
	}
	compare(t, "stdout", want, legible(t, "faults", r.stdout))
	if r.code != 0 {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
}

// A task that fails is tried as often as the master says.
func TestFailedTasksAreTriedAgain(t *testing.T) {
	reason, stack, _ := strings.Cut(taskFaults["panic"], "\n")
	once := ofATask + taskFaults["panic"] + "\n"
	thrice := ""
	for attempt := 1; attempt <= 2; attempt++ {
		thrice += fmt.Sprintf("WARN task failed and is tried again stage=0.0 partition=1 attempt=%d executor=local cause=%q\n", attempt, reason)
	}
	thrice += strings.TrimSuffix(ofATask, "failed: ") + "failed 3 times; last: " + reason + "\n" + stack + "\n"
	for master, want := range map[string]string{
		"local": once, "local[2]": once, "local[2,1]": once, "local[1,3]": thrice, "local[2,3]": thrice,
	} {
		t.Run(master, func(t *testing.T) {
			t.Parallel()
			r := runGuest(t, t.TempDir(), []string{"--master", master}, "faults", "panic")
			if r.code != 1 || r.stdout != "0 elements\n" {
				t.Errorf("exit code %d, stdout %q", r.code, r.stdout)
			}
			// The log does not wait for what the job says itself.
			lines := strings.SplitAfter(legible(t, "faults", r.stderr), "\n")
			slices.SortStableFunc(lines, func(a, b string) int {
				return cmp.Compare(strings.Index(b, "WARN"), strings.Index(a, "WARN"))
			})
			compare(t, "stderr", want, strings.Join(lines, ""))
		})
	}
}

func TestTheDriversEndIsTheJobs(t *testing.T) {
	for way, want := range map[string]result{
		"no-context":       {code: 0, stdout: "no context\n"},
		"driver-exit":      {code: 3, stdout: "leaving\n"},
		"exit-after-a-job": {code: 3, stdout: "10 <nil>\n"},
		"two-contexts":     {code: 1, stderr: "newContext: the job has a context already, and one is all that there can be\n"},
		"driver-panic": {code: 2, stderr: "panic: element 7 is bad\n\tand has two lines\n\ngoroutine 1 [running]:\n" +
			"main.panicking(...)\n\t<panics here>\nmain.init.func()\n\t<a driver that panics>\nmain.main()\n\t<run()>\n"},
		"driver-deadlock": {code: 2, stderr: "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n" +
			"main.init.func()\n\t<a driver that waits for nobody>\nmain.main()\n\t<run()>\n"},
		"driver-recursion": {code: 1, stderr: "quern run: the driver failed: stack overflow: the guest's calls take N MiB of stack, " +
			"the limit is 16 MiB, mostly in main.endless: is there endless recursion? If not, raise --conf quern.task.stackSize=SIZE\n"},
		"nonsense": {code: 1, stderr: "there is no way to go wrong called \"nonsense\"\n"},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := runGuest(t, t.TempDir(), nil, "faults", way)
			r.stderr = legible(t, "faults", r.stderr)
			if r != want {
				t.Errorf("exit code %d, want %d", r.code, want.code)
				compare(t, "stdout", want.stdout, r.stdout)
				compare(t, "stderr", want.stderr, r.stderr)
			}
		})
	}
	t.Run("driver-memory", func(t *testing.T) {
		t.Parallel()
		r := runGuest(t, t.TempDir(), []string{"--conf", "quern.driver.memory=64m"}, "faults", "driver-memory")
		// Go's runtime says at length where it was, and of that the driver's own stack
		// is shown; the last line is ours.
		if strings.Count(r.stderr, "\ngoroutine ") != 1 || !strings.Contains(r.stderr, "\nmain.main()\n") ||
			!strings.Contains(r.stderr, "\n[goroutines left out: ") {
			t.Errorf("stderr is %s", r.stderr)
		}
		last := r.stderr[1+strings.LastIndexByte(strings.TrimSpace(r.stderr), '\n'):]
		compare(t, "the last line of stderr", "quern run: out of memory: the driver's memory is N MiB, wanted 1.0 MiB more, and the limit is "+
			"64 MiB: keep less in the driver, or raise it with --conf quern.driver.memory=SIZE\n", legible(t, "faults", last))
		if r.code != 1 {
			t.Errorf("exit code %d", r.code)
		}
	})
}
