package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// forkRules has what the job forks prints of each rule.
var forkRules = map[string]string{
	// Both tasks begin with the driver's value as it is at the action. The driver
	// does not see what they have made of it.
	"counter": "[1 2 1 2] <nil>\n0\n[11 12 11 12] <nil>\n10\n",
	"reached": "[20 map[driver:1 task:0] [1 2 3] 21 map[driver:1 task:1] [2 2 3]] <nil>\n20 map[driver:1] [1 2 3]\n",
	"inside": strings.ReplaceAll(`count at <on action>: X
map at <on transformation>: X
range at <on source>: X
newContext at <on context>: X
<nil>
`, "X", "driver call inside a task: transformations and actions belong to the driver. "+
		"Run the action before, keep its result in a variable, and use the variable in the closure"),
	"background": "[true true] <nil>\n",
	"lock": `0 job 0 (count at <counts locked>) failed: stage 0 (map at <is locked>) partition 0 failed: fatal error: all goroutines are asleep - deadlock!
	sync.(*Mutex).Lock(...)
		Go's sync/mutex.go
	main.init.func(...)
		<locks>
1 <nil>
`,
	"clock":  "[true true] <nil>\n",
	"prints": "the driver's standard output <nil>\n",
}

func TestForkRules(t *testing.T) {
	for rule, want := range forkRules {
		for _, master := range []string{"local[1]", "local[2]"} {
			t.Run(rule+" "+master, func(t *testing.T) {
				t.Parallel()
				r := runGuest(t, t.TempDir(), []string{"--master", master, "--conf", "quern.test.encodeMessages=true"}, "forks", rule)
				if r.code != 0 {
					t.Errorf("exit code %d", r.code)
				}
				compare(t, "stdout", want, legible(t, "forks", r.stdout))
				stderr := strings.SplitAfter(r.stderr, "\n")
				slices.Sort(stderr) // tasks print in any order
				wantErr := ""
				if rule == "prints" {
					wantErr = `INFO a task's standard error 0 task="partition 0 of foreach (stage 0.0, attempt 1)"
INFO a task's standard error 1 task="partition 1 of foreach (stage 0.0, attempt 1)"
INFO a task's standard output 0 task="partition 0 of foreach (stage 0.0, attempt 1)"
INFO a task's standard output 1 task="partition 1 of foreach (stage 0.0, attempt 1)"
the driver's standard error
`
				}
				compare(t, "stderr", wantErr, strings.Join(stderr, ""))
			})
		}
	}
}

// All of Go's generators, and the order of a map, are drawn anew in each task of
// each job, and are the same in every run with the same seed, whoever runs the
// task and however often.
func TestTasksDrawTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	draws := func(seed string, flags ...string) string {
		t.Helper()
		r := runGuest(t, t.TempDir(), append(flags, "--seed", seed), "forks", "random")
		if lines := strings.Split(r.stdout, "\n"); r.code != 0 || len(lines) != 10 || lines[8] != "8 <nil>" {
			t.Fatalf("%+v, want the draws of 8 tasks, all of them different", r)
		}
		return r.stdout
	}
	first := draws("1", "--master", "local[1]")
	compare(t, "the draws on two slots", first, draws("1", "--master", "local[2]"))
	compare(t, "the draws of tasks that are tried again", first,
		draws("1", "--master", "local[2,4]", "--conf", "quern.test.failTasks=0.6", "--conf", "quern.test.encodeMessages=true"))
	for _, line := range strings.Split(strings.TrimSpace(draws("2", "--master", "local[2]")), "\n")[:8] {
		if strings.Contains(first, line) {
			t.Errorf("%s is drawn with another seed, too", line)
		}
	}
}
