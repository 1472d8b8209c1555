package executor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/puppet"
	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an executor whose guests are puppets, and the driver before it.
type world struct {
	t        testing.TB
	executor *Executor
	dir      string // the executor's own folder
	data     string // a folder that tasks may read and write
	image    *image.Image
	updates  chan msg.StatusUpdate
	log      log

	mu      sync.Mutex
	scripts map[int]script // by partition
	outputs map[msg.ShuffleID][]msg.MapOutput
	next    msg.TaskID
}

// script is what a task does. Its result is that of the task entry.
type script func(g *puppet.Guest) int64

type log struct {
	sync.Mutex
	strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Builder.Write(b)
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), data: t.TempDir(),
		updates: make(chan msg.StatusUpdate, 100),
		scripts: make(map[int]script),
		outputs: make(map[msg.ShuffleID][]msg.MapOutput),
	}
	grants, err := files.New(w.data, []string{w.data}, []string{w.data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(grants.Close)
	theatre := puppet.New(t, hostcall.Functions(), func(env any) puppet.Script {
		info := env.(*hostcall.Env).Task.Info()
		w.mu.Lock()
		defer w.mu.Unlock()
		return puppet.Script(w.scripts[int(info[abi.InfoPartition])])
	})
	w.image = theatre.Image(t)
	cfg := Config{
		ID: "a", Cores: 2, Memory: 64 << 20, Program: theatre.Program, Files: grants, Driver: w,
		TaskMemory: 16 << 20, MaxResult: 1 << 20, LocalDir: w.dir, Compression: "s2",
		Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})),
	}
	for _, f := range change {
		f(&cfg)
	}
	w.executor = New(cfg)
	t.Cleanup(func() {
		w.executor.Close()
		if used := w.executor.pool.Used(); used != 0 {
			t.Errorf("%d bytes of the pool are still in use", used)
		}
		if len(w.executor.tasks) != 0 {
			t.Errorf("%d tasks are not forgotten", len(w.executor.tasks))
		}
	})
	return w
}

// The world is the executor's driver.

func (w *world) Status(u msg.StatusUpdate) { w.updates <- u }

func (w *world) MapOutputs(_ context.Context, r msg.MapOutputsRequest) (msg.MapOutputsReply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	outputs, ok := w.outputs[r.Shuffle]
	if !ok {
		return msg.MapOutputsReply{}, errors.New("1 of 2 map outputs are missing")
	}
	return msg.MapOutputsReply{Outputs: outputs}, nil
}

func (w *world) Image(_ context.Context, id msg.ImageID) (*image.Image, error) {
	if id != 1 {
		return nil, errors.New("image 2 is gone: its job has ended")
	}
	w.image.Retain()
	return w.image, nil
}

// result is a stage whose tasks return results, mapping one whose tasks write
// shuffle 1.
func result() msg.Stage {
	return msg.Stage{ID: msg.StageAttempt{Stage: 3, Attempt: 1}, Job: 2, Image: 1, Kind: abi.TaskResult, Target: 7, Name: "count", Seed: 5}
}

func mapping(partitions int) msg.Stage {
	return msg.Stage{Image: 1, Kind: abi.TaskShuffle, Target: 1, Name: "map", Shuffle: &abi.ShuffleDesc{
		ID: 1, Partitioner: abi.PartitionHash, Partitions: partitions,
	}}
}

// launch starts a task for each script, at partitions 0, 1 and so on, and
// answers their numbers.
func (w *world) launch(stage msg.Stage, scripts ...script) []msg.TaskID {
	w.mu.Lock()
	l := msg.Launch{Stage: stage}
	var ids []msg.TaskID
	for p, s := range scripts {
		w.scripts[p] = s
		l.Tasks = append(l.Tasks, msg.Task{ID: w.next, Partition: p})
		ids = append(ids, w.next)
		w.next++
	}
	w.mu.Unlock()
	w.executor.Launch(l)
	return ids
}

// patience is how long the tests wait for what must come.
const patience = 30 * time.Second

// ended waits for so many reports and answers them in the order of their tasks.
func (w *world) ended(n int) []msg.StatusUpdate {
	w.t.Helper()
	var all []msg.StatusUpdate
	for len(all) < n {
		select {
		case u := <-w.updates:
			all = append(all, u)
		case <-time.After(patience):
			w.t.Fatalf("only %d of %d tasks have ended", len(all), n)
		}
	}
	slices.SortFunc(all, func(a, b msg.StatusUpdate) int { return int(a.Task) - int(b.Task) })
	return all
}

// run runs one task to its end.
func (w *world) run(stage msg.Stage, s script) msg.StatusUpdate {
	w.t.Helper()
	w.launch(stage, s)
	return w.ended(1)[0]
}

// finishes asserts that a task has finished.
func (w *world) finishes(u msg.StatusUpdate) msg.StatusUpdate {
	w.t.Helper()
	if u.State != msg.StateFinished {
		w.t.Fatalf("task %d %s: %+v", u.Task, u.State, u.Failure)
	}
	return u
}

// fails asserts that a task has failed with a kind and a message.
func (w *world) fails(u msg.StatusUpdate, kind msg.FailureKind, message string) *msg.Failure {
	w.t.Helper()
	want := msg.StateFailed
	if kind == msg.FailKilled {
		want = msg.StateKilled
	}
	if u.State != want || u.Failure == nil {
		w.t.Fatalf("task %d %s, failure %+v; want %s", u.Task, u.State, u.Failure, want)
	}
	if u.Failure.Kind != kind {
		w.t.Errorf("the failure's kind is %q, want %q", u.Failure.Kind, kind)
	}
	if diff := cmp.Diff(message, u.Failure.Message); diff != "" {
		w.t.Errorf("the failure's message (-want +got):\n%s", diff)
	}
	return u.Failure
}

// left is what lies in a folder.
func left(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// must fails the task with what the host said, if a call failed.
func must(g *puppet.Guest, got int64) int64 {
	if got < 0 {
		g.Call(puppet.TaskFail, 0, 0, 0)
		p, n := g.Put([]byte("unexpected: " + g.LastError()))
		code := abi.ErrUser
		g.Call(puppet.TaskFail, uint32(code), p, n)
	}
	return got
}

// open, write, read and closePort are the calls of a task that go well.
func open(g *puppet.Guest, kind abi.PortKind, id, partition uint32) uint32 {
	return uint32(must(g, g.Call(puppet.PortOpen, uint32(kind), id, partition)))
}

func write(g *puppet.Guest, port uint32, batch string) {
	p, n := g.Put([]byte(batch))
	must(g, g.Call(puppet.PortWrite, port, p, n))
}

func readAll(g *puppet.Guest, port uint32) string {
	var all strings.Builder
	for {
		n := must(g, g.Call(puppet.PortRead, port, g.Room(), 16<<10))
		if n <= 0 {
			return all.String()
		}
		all.Write(g.Get(g.Room(), uint32(n)))
	}
}

func closePort(g *puppet.Guest, port uint32) { must(g, g.Call(puppet.PortClose, port)) }
