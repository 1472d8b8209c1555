package sched

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata with what happens now")

// TestTranscripts plays the interactions in testdata. A transcript is a sequence
// of blocks: commands, a line of four dashes, and all that leaves the schedulers
// because of them, up to an empty line. Lines that begin with # are comments.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(data), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the interaction has changed (-recorded +now); if that is right, run with -update:\n%s", diff)
			}
		})
	}
}

// play runs a transcript's commands and returns the transcript as it is now.
func play(t *testing.T, text string) string {
	p := &player{t: t, tasks: make(map[msg.TaskID]*launchedTask)}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, _ := strings.Cut(block, "----\n")
		for line := range strings.Lines(commands) {
			line = strings.TrimRight(line, "\n")
			if line == "----" {
				break
			}
			fmt.Fprintln(&out, line)
			if line != "" && !strings.HasPrefix(line, "#") {
				if err := p.do(strings.Fields(line)); err != nil {
					fmt.Fprintf(&p.log, "error: %v\n", err)
				}
			}
		}
		if p.shell != nil && !p.hold {
			p.settle()
		}
		if p.log.Len() > 0 {
			fmt.Fprintf(&out, "----\n%s", p.log.String())
			p.log.Reset()
		}
	}
	return out.String()
}

// player carries out commands and logs what leaves the schedulers.
type player struct {
	t *testing.T
	*shell
	log   strings.Builder
	hold  bool // do not settle after this block
	tasks map[msg.TaskID]*launchedTask
}

type launchedTask struct {
	msg.Task
	executor msg.ExecutorID
	stage    msg.Stage
}

func (p *player) do(args []string) error {
	p.hold = false
	verb, args := args[0], args[1:]
	if verb == "limits" { // limits MAXFAILURES MAXATTEMPTS; always the first command
		f, _ := strconv.Atoi(args[0])
		a, _ := strconv.Atoi(args[1])
		p.shell = newShell(7, f, a, p)
		return nil
	}
	number := func(i int) int {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			p.t.Fatalf("%s %v: %v", verb, args, err)
		}
		return n
	}
	switch verb {
	case "rdd": // rdd ID NAME ..., see parseRDD
		d, err := parseRDD(args)
		if err != nil {
			return err
		}
		_, err = p.graph.Define(d, nil)
		return err
	case "job": // job ID RDD NAME IMAGE [PARTITION...]
		j := dag.Job{
			ID: msg.JobID(number(0)), RDD: msg.RDDID(number(1)), Action: uint32(100 + number(0)), Name: args[2],
			CallSite: fmt.Sprintf("main.go:%d", 90+number(0)), Image: msg.ImageID(number(3)),
		}
		for i := range args[4:] {
			j.Partitions = append(j.Partitions, number(4+i))
		}
		return p.dag.SubmitJob(j)
	case "cancel": // cancel JOB REASON...
		p.dag.CancelJob(msg.JobID(number(0)), strings.Join(args[1:], " "))
	case "executor": // executor NAME SLOTS
		return p.sched.ExecutorAdded(msg.ExecutorID(args[0]), number(1))
	case "lost": // lost NAME REASON...
		id := msg.ExecutorID(args[0])
		p.sched.ExecutorLost(id, msg.Failure{Message: fmt.Sprintf("executor %s: %s", id, strings.Join(args[1:], " "))})
		p.dag.ExecutorLost(id)
	case "finish", "running", "killed": // finish TASK...
		for i := range args {
			p.report(number(i), map[string]msg.State{
				"finish": msg.StateFinished, "running": msg.StateRunning, "killed": msg.StateKilled,
			}[verb], nil)
		}
	case "fail": // fail TASK KIND MESSAGE...
		kind, err := failureKind(args[1])
		if err != nil {
			return err
		}
		p.report(number(0), msg.StateFailed, &msg.Failure{Kind: kind, Message: strings.Join(args[2:], " ")})
	case "fetch-fail": // fetch-fail TASK SHUFFLE MAP
		f := &msg.FetchLost{Shuffle: msg.ShuffleID(number(1)), Map: number(2)}
		if reply, err := p.dag.MapOutputs(f.Shuffle); err == nil && f.Map >= 0 {
			f.Executor, f.Task = reply.Outputs[f.Map].Executor, reply.Outputs[f.Map].Task
		}
		p.report(number(0), msg.StateFailed, &msg.Failure{
			Kind: msg.FailFetch, Message: fmt.Sprintf("map output %d of shuffle %d cannot be read", f.Map, f.Shuffle), Fetch: f,
		})
	case "outputs": // outputs SHUFFLE
		reply, err := p.dag.MapOutputs(msg.ShuffleID(number(0)))
		if err != nil {
			return err
		}
		for _, o := range reply.Outputs {
			p.logf("output %d of shuffle %d: task %d on %s", o.Map, o.Shuffle, o.Task, o.Executor)
		}
	case "hold": // the next block comes before the schedulers are asked what to do
		p.hold = true
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
	return nil
}

func failureKind(name string) (msg.FailureKind, error) {
	for k := msg.FailUser; k <= msg.FailInternal; k++ {
		if strings.ReplaceAll(k.String(), " ", "-") == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("unknown kind of failure %q", name)
}

// report sends a status update as the task's executor would.
func (p *player) report(id int, state msg.State, f *msg.Failure) {
	t := p.tasks[msg.TaskID(id)]
	if t == nil {
		// No such task was ever started: whatever is said of it must be ignored.
		p.sched.StatusUpdate(&msg.StatusUpdate{Executor: "nobody", Task: msg.TaskID(id), State: state})
		return
	}
	u := &msg.StatusUpdate{Executor: t.executor, Task: t.ID, Stage: t.stage.ID, State: state, Failure: f}
	if state == msg.StateFinished {
		if t.stage.Kind == abi.TaskShuffle {
			u.MapOutput = &msg.MapOutput{
				Executor: t.executor, Shuffle: msg.ShuffleID(t.stage.Target), Map: t.Partition, Task: t.ID,
			}
		} else {
			u.Result = [][]byte{fmt.Appendf(nil, "by task %d", t.ID)}
		}
	}
	p.sched.StatusUpdate(u)
}

func (p *player) logf(format string, args ...any) { fmt.Fprintf(&p.log, format+"\n", args...) }

func (p *player) taskEnded(e *dag.TaskEnd) {
	why := ""
	if e.Failure != nil {
		why = fmt.Sprintf(" (%s): %s", e.Failure.Kind, e.Failure.Message)
	}
	p.logf("task %d of %s, partition %d attempt %d on %s: %s%s",
		e.Task, e.Stage, e.Partition, e.Attempt, e.Executor, e.State, why)
}

func (p *player) taskSetFailed(f dag.TaskSetFailed) {
	p.logf("task set %s given up: partition %d, %d failures; last: %s", f.Stage, f.Partition, f.Failures, f.Failure.Message)
}

func (p *player) kill(k Kill) { p.logf("kill tasks %v on %s: %s", k.Tasks, k.Executor, k.Reason) }

func (p *player) submitted(ts dag.TaskSet) {
	p.logf("submit %s for job %d, image %d, seed %x: partitions %v",
		ts.Stage.ID, ts.Priority, ts.Stage.Image, ts.Stage.Seed, ts.Partitions)
}

func (p *player) cancelled(c dag.Cancel) { p.logf("cancel %s: %s", c.Stage, c.Reason) }

func (p *player) partitionDone(d dag.PartitionDone) {
	p.logf("partition %d of %s is done", d.Partition, d.Stage)
}

func (p *player) result(r dag.JobResult) {
	p.logf("result %d of job %d: partition %d %s", r.Index, r.Job, r.Partition, slices.Concat(r.Result...))
}

func (p *player) jobEnded(j dag.JobEnded) {
	if j.Err == nil {
		p.logf("end of job %d", j.Job)
		return
	}
	var f *msg.Failure
	p.logf("end of job %d: %v (a task's failure: %t)", j.Job, j.Err, errors.As(j.Err, &f))
}

func (p *player) released(i msg.ImageID) { p.logf("release image %d", i) }

func (p *player) happened(e event.Event) {
	switch e := e.(type) {
	case event.JobStarted:
		var stages []string
		for _, s := range e.Stages {
			text := fmt.Sprintf("%d %s %d tasks", s.ID, s.Name, s.Tasks)
			if s.Skipped {
				text = fmt.Sprintf("%d %s skipped", s.ID, s.Name)
			}
			stages = append(stages, text)
		}
		p.logf("event: job %d started: %s", e.Job, strings.Join(stages, ", "))
	case event.JobEnded:
		p.logf("event: job %d ended, cancelled %t, error %q", e.Job, e.Cancelled, e.Error)
	case event.StageSubmitted:
		p.logf("event: stage %s submitted: %s, %d tasks", e.Stage, e.Name, e.Tasks)
	case event.StageCompleted:
		p.logf("event: stage %s completed, error %q", e.Stage, e.Error)
	default:
		p.t.Errorf("unexpected event %#v", e)
	}
}

func (p *player) launched(l Launch) {
	var tasks []string
	for _, t := range l.Tasks {
		p.tasks[t.ID] = &launchedTask{Task: t, executor: l.Executor, stage: l.Stage}
		text := fmt.Sprintf("%d for partition %d", t.ID, t.Partition)
		if t.Attempt > 0 {
			text += fmt.Sprintf(" attempt %d", t.Attempt)
		}
		tasks = append(tasks, text)
	}
	p.logf("launch on %s, stage %s: task %s", l.Executor, l.Stage.ID, strings.Join(tasks, ", "))
}
