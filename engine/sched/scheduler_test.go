package sched

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// withExecutors returns a scheduler with executors a, b, ... of these slots.
func withExecutors(t *testing.T, slots ...int) *Scheduler {
	t.Helper()
	s := New(Config{MaxFailures: 1})
	for i, n := range slots {
		if err := s.ExecutorAdded(msg.ExecutorID('a'+rune(i)), n); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// setOf returns a set of n result tasks for attempt 0 of a stage.
func setOf(stage msg.StageID, n int) dag.TaskSet {
	ts := dag.TaskSet{Stage: msg.Stage{ID: msg.StageAttempt{Stage: stage}, Kind: abi.TaskResult}}
	for p := range n {
		ts.Partitions = append(ts.Partitions, p)
	}
	return ts
}

// given says what a launch gives to whom, such as "a: 0 1".
func given(launches []Launch) []string {
	var all []string
	for _, l := range launches {
		text := string(l.Executor) + ":"
		for _, t := range l.Tasks {
			text += fmt.Sprintf(" %d", t.Partition)
		}
		all = append(all, text)
	}
	return all
}

func TestTasksAreSpreadEvenly(t *testing.T) {
	for _, c := range []struct {
		slots []int
		tasks int
		want  []string
	}{
		{[]int{4, 4, 4}, 3, []string{"a: 0", "b: 1", "c: 2"}},
		{[]int{4, 4, 4}, 7, []string{"a: 0 1 2", "b: 3 4", "c: 5 6"}},
		{[]int{1, 4, 4}, 7, []string{"a: 0", "b: 1 2 3", "c: 4 5 6"}},
		{[]int{2, 2}, 9, []string{"a: 0 1", "b: 2 3"}},
		{[]int{8}, 3, []string{"a: 0 1 2"}},
		{nil, 3, nil},
	} {
		s := withExecutors(t, c.slots...)
		s.Submit(setOf(0, c.tasks))
		if diff := cmp.Diff(c.want, given(s.Launch())); diff != "" {
			t.Errorf("%d tasks on slots %v (-want +got):\n%s", c.tasks, c.slots, diff)
		}
		if again := s.Launch(); len(again) > 0 {
			t.Errorf("%d tasks on slots %v: a second call launches %v", c.tasks, c.slots, given(again))
		}
	}
}

func TestTheNextTaskSetBeginsWithOtherExecutors(t *testing.T) {
	s := withExecutors(t, 2, 2, 2)
	s.Submit(setOf(0, 2))
	s.Submit(setOf(1, 2))
	want := []string{"a: 0", "b: 1", "c: 0", "a: 1"}
	if diff := cmp.Diff(want, given(s.Launch())); diff != "" {
		t.Errorf("launches (-want +got):\n%s", diff)
	}
}

func TestReportsThatCannotBeMeantAreIgnored(t *testing.T) {
	s := withExecutors(t, 1, 1)
	s.Submit(setOf(3, 2))
	s.Launch()
	good := msg.StatusUpdate{Executor: "a", Task: 0, Stage: msg.StageAttempt{Stage: 3}, State: msg.StateFinished}
	for name, change := range map[string]func(*msg.StatusUpdate){
		"another executor's task": func(u *msg.StatusUpdate) { u.Executor = "b" },
		"an unknown executor":     func(u *msg.StatusUpdate) { u.Executor = "z" },
		"an unknown task":         func(u *msg.StatusUpdate) { u.Task = 77 },
		"another stage":           func(u *msg.StatusUpdate) { u.Stage.Stage = 4 },
		"another stage attempt":   func(u *msg.StatusUpdate) { u.Stage.Attempt = 1 },
		"a state that is no end":  func(u *msg.StatusUpdate) { u.State = msg.StateRunning },
	} {
		u := good
		change(&u)
		s.StatusUpdate(&u)
		if r := s.Ready(); !r.Empty() {
			t.Errorf("a report about %s led to %+v", name, *r)
		}
	}
	s.StatusUpdate(&good)
	if r := s.Ready(); len(r.Ended) != 1 {
		t.Errorf("the right report led to %+v", *r)
	}
}

func TestATaskThatEndsWithoutItsOutputHasFailed(t *testing.T) {
	shuffle := setOf(0, 2)
	shuffle.Stage.Kind, shuffle.Stage.Target = abi.TaskShuffle, 9
	sink := setOf(0, 2)
	sink.Stage.Sink = &msg.Sink{Path: "/out"}
	mapOutput := func(shuffle msg.ShuffleID, partition int) msg.StatusUpdate {
		return msg.StatusUpdate{MapOutput: &msg.MapOutput{Executor: "a", Shuffle: shuffle, Map: partition}}
	}
	file := func(partition int) msg.StatusUpdate {
		return msg.StatusUpdate{Output: &msg.SinkOutput{Partition: partition, Path: "/out/x"}}
	}
	for _, c := range []struct {
		name string
		set  dag.TaskSet
		end  msg.StatusUpdate
		want string
	}{
		{"a map task with its output", shuffle, mapOutput(9, 0), ""},
		{"a map task without", shuffle, msg.StatusUpdate{},
			"executor a reported partition 0 as finished without its output for shuffle 9"},
		{"a map task with another partition's", shuffle, mapOutput(9, 1),
			"executor a reported partition 0 as finished without its output for shuffle 9"},
		{"a map task with another shuffle's", shuffle, mapOutput(8, 0),
			"executor a reported partition 0 as finished without its output for shuffle 9"},
		{"a saving task with its file", sink, file(0), ""},
		{"a saving task without", sink, msg.StatusUpdate{},
			"executor a reported partition 0 as finished without its output file"},
		{"a saving task with another's", sink, file(1),
			"executor a reported partition 0 as finished without its output file"},
		{"a failure without a reason", sink, msg.StatusUpdate{State: msg.StateFailed},
			"the executor reported a failure without a reason"},
	} {
		s := withExecutors(t, 1)
		s.Submit(c.set)
		s.Launch()
		u := c.end
		u.Executor = "a"
		if u.State == 0 {
			u.State = msg.StateFinished
		}
		s.StatusUpdate(&u)
		r := s.Ready()
		got := ""
		if f := r.Ended[0].Failure; f != nil {
			got = f.Message
			if f.Kind != msg.FailInternal || r.Ended[0].State != msg.StateFailed || r.Ended[0].MapOutput != nil ||
				r.Ended[0].Output != nil || len(r.Failed) != 1 {
				t.Errorf("%s: %+v", c.name, *r)
			}
		}
		if got != c.want {
			t.Errorf("%s: failure %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnExecutorLostToTheJobsFaultCounts(t *testing.T) {
	for kind, wantFailed := range map[msg.FailureKind]int{msg.FailExecutorLost: 0, 0: 0, msg.FailMemory: 1} {
		s := withExecutors(t, 2)
		s.Submit(setOf(0, 2))
		s.Launch()
		s.ExecutorLost("a", msg.Failure{Kind: kind, Message: "killed by the system: out of memory"})
		s.ExecutorLost("a", msg.Failure{Message: "no heartbeat"}) // a later, vaguer cause changes nothing
		r := s.Ready()
		if len(r.Ended) != 2 || len(r.Failed) != wantFailed || len(r.Kills) != 0 {
			t.Errorf("lost with cause %d: %d ended, %d sets failed, %d kills", kind, len(r.Ended), len(r.Failed), len(r.Kills))
		}
		for _, e := range r.Ended {
			if e.Failure.Message != "killed by the system: out of memory" {
				t.Errorf("lost with cause %d: task %d failed with %q", kind, e.Task, e.Failure.Message)
			}
		}
	}
}

func TestKillsOfOneExecutorGoTogether(t *testing.T) {
	s := withExecutors(t, 3, 1)
	s.Submit(setOf(0, 4))
	s.Launch()
	s.Cancel(dag.Cancel{Reason: "enough"})
	s.Cancel(dag.Cancel{Reason: "enough, I said"})
	want := []Kill{
		{"a", msg.Kill{Tasks: []msg.TaskID{0, 1, 3}, Reason: "enough"}},
		{"b", msg.Kill{Tasks: []msg.TaskID{2}, Reason: "enough"}},
	}
	if diff := cmp.Diff(want, s.Ready().Kills); diff != "" {
		t.Errorf("kills (-want +got):\n%s", diff)
	}
}

// TestLaunchedTasksAreTheReceivers checks that the tasks of a launch share no
// memory with others, so that a receiver may fill them in.
func TestLaunchedTasksAreTheReceivers(t *testing.T) {
	s := withExecutors(t, 2, 2)
	s.Submit(setOf(0, 4))
	launches := s.Launch()
	first := append(launches[0].Tasks, msg.Task{ID: 1234})
	if first[2].ID != 1234 || launches[1].Tasks[0].ID != 2 {
		t.Errorf("appending to one launch changed another: %v", launches[1].Tasks)
	}
}
