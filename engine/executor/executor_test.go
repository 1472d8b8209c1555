package executor

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/puppet"
	"github.com/quern-project/quern/sdk/abi"
)

func nothing(*puppet.Guest) int64 { return 0 }

func spin(g *puppet.Guest) int64 { g.Spin(); return 0 }

func TestATaskReturnsItsBatchesInOrder(t *testing.T) {
	w := newWorld(t)
	u := w.finishes(w.run(result(), func(g *puppet.Guest) int64 {
		port := open(g, abi.PortResult, 7, 0)
		write(g, port, "first")
		write(g, port, "")
		write(g, port, "third")
		closePort(g, port)
		return 0
	}))
	if diff := cmp.Diff([][]byte{[]byte("first"), {}, []byte("third")}, u.Result); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	if u.Executor != "a" || u.Stage != (msg.StageAttempt{Stage: 3, Attempt: 1}) || u.Metrics.ResultBytes != 10 || u.Metrics.PeakMemory < 64<<10 {
		t.Errorf("the report is %+v", u)
	}
}

func TestATaskLearnsWhatItIs(t *testing.T) {
	w := newWorld(t)
	var infos [][]uint64
	learn := func(g *puppet.Guest) int64 {
		n := must(g, g.Call(puppet.TaskInfo, g.Room(), 100))
		var words []uint64
		for b := g.Get(g.Room(), uint32(n)); len(b) > 0; b = b[8:] {
			words = append(words, binary.LittleEndian.Uint64(b))
		}
		infos = append(infos, words)
		return 0
	}
	tell := func(partition, attempt int) []uint64 {
		w.mu.Lock()
		w.scripts[partition] = learn
		w.mu.Unlock()
		w.executor.Launch(msg.Launch{Stage: result(), Tasks: []msg.Task{{ID: w.next, Partition: partition, Attempt: attempt}}})
		w.next++
		w.finishes(w.ended(1)[0])
		return infos[len(infos)-1]
	}
	first, again, other := tell(4, 0), tell(4, 1), tell(5, 0)
	want := []uint64{2, 3, 1, 4, 0, first[abi.InfoSeed], 16 << 20}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("task_info (-want +got):\n%s", diff)
	}
	if again[abi.InfoAttempt] != 1 || again[abi.InfoSeed] != first[abi.InfoSeed] {
		t.Errorf("a second attempt learns %v, the first %v", again, first)
	}
	if other[abi.InfoSeed] == first[abi.InfoSeed] {
		t.Error("two partitions have the same seed")
	}
}

func TestARunningTaskIsKilledAndReportedOnceItHasStopped(t *testing.T) {
	w := newWorld(t)
	spinning := make(chan bool)
	ids := w.launch(result(), func(g *puppet.Guest) int64 { close(spinning); return spin(g) })
	<-spinning
	w.executor.Kill(msg.Kill{Tasks: []msg.TaskID{99, ids[0]}, Reason: "job 2 was cancelled"})
	w.fails(w.ended(1)[0], msg.FailKilled, "killed: job 2 was cancelled")
	// The slot is free again.
	w.finishes(w.run(result(), nothing))
	w.executor.Kill(msg.Kill{Tasks: ids, Reason: "too late"})
	w.finishes(w.run(result(), nothing))
}

func TestATaskThatWaitsForASlotIsKilledWithoutRunning(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Cores = 1 })
	spinning := make(chan bool)
	ran := false
	ids := w.launch(result(),
		func(g *puppet.Guest) int64 { close(spinning); return spin(g) },
		func(g *puppet.Guest) int64 { ran = true; return 0 },
		nothing)
	<-spinning
	w.executor.Kill(msg.Kill{Tasks: ids[1:2], Reason: "the stage has failed"})
	w.executor.Kill(msg.Kill{Tasks: ids[:1], Reason: "a second reason"})
	all := w.ended(3)
	w.fails(all[0], msg.FailKilled, "killed: a second reason")
	w.fails(all[1], msg.FailKilled, "killed: the stage has failed")
	w.finishes(all[2])
	if ran {
		t.Error("the killed task has run")
	}
}

func TestClosingStopsAndReportsEveryTask(t *testing.T) {
	w := newWorld(t)
	spinning := make(chan bool, 2)
	busy := func(g *puppet.Guest) int64 { spinning <- true; return spin(g) }
	w.launch(result(), busy, busy, nothing, nothing, nothing)
	<-spinning
	<-spinning
	w.executor.Close()
	for _, u := range w.ended(5) {
		w.fails(u, msg.FailKilled, "killed: the executor is closing")
	}
	w.launch(result(), nothing) // is ignored
	w.executor.Close()
	if len(w.updates) != 0 {
		t.Error("a task that came after the end was reported")
	}
}

func TestSlotsRunAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	meet := make(chan bool)
	w.launch(result(),
		func(*puppet.Guest) int64 { meet <- true; return 0 },
		func(*puppet.Guest) int64 { <-meet; return 0 })
	for _, u := range w.ended(2) {
		w.finishes(u)
	}
}

func TestWhatATaskPrintsGoesToTheLogWithItsName(t *testing.T) {
	w := newWorld(t)
	w.finishes(w.run(result(), func(g *puppet.Guest) int64 {
		g.Print(1, "to standard output\nand ")
		g.Print(2, "to standard error")
		return 0
	}))
	const task = `task="partition 0 of count (stage 3.1, attempt 1)"`
	want := "level=INFO msg=\"to standard output\" " + task + "\nlevel=INFO msg=\"and to standard error\" " + task + "\n"
	if diff := cmp.Diff(want, w.log.String()); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func TestWhatATaskPrintsIsBounded(t *testing.T) {
	w := newWorld(t)
	w.finishes(w.run(result(), func(g *puppet.Guest) int64 {
		line := strings.Repeat("x", 1023) + "\n"
		for range 1000 {
			g.Print(1, line)
		}
		g.Print(1, "the end\n")
		return 0
	}))
	got := w.log.String()
	if len(got) > 300<<10 || !strings.Contains(got, "left out") || !strings.Contains(got, `msg="the end"`) {
		t.Errorf("of a megabyte the log has %d bytes, and ends with %q", len(got), got[max(0, len(got)-200):])
	}
}

func TestInjectedFailuresSpareTheLastAttempt(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Faults = Faults{Rate: 1, MaxFailures: 4, Seed: 1} })
	seen := map[string]bool{}
	write := func(g *puppet.Guest) int64 {
		port := open(g, abi.PortResult, 7, 0)
		write(g, port, "batch")
		closePort(g, port)
		return 0
	}
	for partition := range 6 {
		for attempt := range 4 {
			w.scripts[partition] = write
			w.executor.Launch(msg.Launch{Stage: result(), Tasks: []msg.Task{{ID: w.next, Partition: partition, Attempt: attempt}}})
			w.next++
			u := w.ended(1)[0]
			if attempt == 3 {
				w.finishes(u)
				continue
			}
			if u.State != msg.StateFailed || u.Failure.Kind != msg.FailUser || u.Result != nil {
				t.Fatalf("attempt %d: %+v", attempt, u)
			}
			seen[u.Failure.Message] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{
		"failure injected at the start of the task (quern.test.failTasks)":                     true,
		"failure injected at a write (quern.test.failTasks)":                                   true,
		"closing the output: failure injected at the end of the output (quern.test.failTasks)": true,
	}, seen); diff != "" {
		t.Errorf("the failures (-want +got):\n%s", diff)
	}
}
