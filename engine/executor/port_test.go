package executor

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/sink"
	"github.com/quern-project/quern/internal/puppet"
	"github.com/quern-project/quern/sdk/abi"
)

// records encodes pairs of keys and values as a batch.
func records(kv ...string) string {
	var b []byte
	for i := 0; i < len(kv); i += 2 {
		b = binary.AppendUvarint(b, uint64(len(kv[i])))
		b = binary.AppendUvarint(b, uint64(len(kv[i+1])))
		b = append(append(b, kv[i]...), kv[i+1]...)
	}
	return string(b)
}

// values lists the values of a batch.
func values(batch string) (all []string) {
	for b := []byte(batch); len(b) > 0; {
		k, n := binary.Uvarint(b)
		v, m := binary.Uvarint(b[n:])
		all = append(all, string(b[n+m+int(k):n+m+int(k+v)]))
		b = b[n+m+int(k+v):]
	}
	return all
}

// maps runs a map task that writes these values to shuffle 1, each with itself
// as the key, and registers its output.
func (w *world) maps(partitions int, vs ...string) msg.MapOutput {
	w.t.Helper()
	u := w.finishes(w.run(mapping(partitions), func(g *puppet.Guest) int64 {
		port := open(g, abi.PortShuffleWrite, 1, 0)
		for _, v := range vs {
			write(g, port, records(v, v))
		}
		closePort(g, port)
		return 0
	}))
	if u.MapOutput == nil {
		w.t.Fatalf("no map output: %+v", u)
	}
	w.mu.Lock()
	w.outputs[1] = []msg.MapOutput{*u.MapOutput}
	w.mu.Unlock()
	return *u.MapOutput
}

// reduce runs a task that reads partition 0 of shuffle 1.
func (w *world) reduce(got *[]string) msg.StatusUpdate {
	s := result()
	s.Reads = []abi.ShuffleDesc{{ID: 1, Partitioner: abi.PartitionHash, Partitions: 1}}
	return w.run(s, func(g *puppet.Guest) int64 {
		port := open(g, abi.PortShuffleRead, 1, 0)
		*got = values(readAll(g, port))
		closePort(g, port)
		return 0
	})
}

func TestWhatMapTasksWriteReduceTasksRead(t *testing.T) {
	w := newWorld(t)
	out := w.maps(1, "a", "b", "c")
	if out.Executor != "a" || out.Records != 3 || out.Shuffle != 1 || filepath.Dir(out.Path) != w.dir {
		t.Errorf("the map output is %+v", out)
	}
	var got []string
	u := w.finishes(w.reduce(&got))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
	if u.Metrics.ShuffleReadRecs != 3 || u.Metrics.ShuffleRead == 0 {
		t.Errorf("the metrics are %+v", u.Metrics)
	}
}

func TestADamagedMapOutputIsAFetchFailureOfThatOutput(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a flipped bit": func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)/3] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
		"a truncated file": func(path string) error { return os.Truncate(path, 20) },
		"an empty file":    func(path string) error { return os.Truncate(path, 0) },
		"a missing file":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			out := w.maps(1, "a", "b", "c")
			if err := damage(out.Path); err != nil {
				t.Fatal(err)
			}
			var got []string
			u := w.reduce(&got)
			if u.Failure == nil {
				t.Fatalf("nobody noticed: %v", got)
			}
			f := w.fails(u, msg.FailFetch, u.Failure.Message)
			if !strings.HasPrefix(f.Message, fmt.Sprintf("shuffle 1: partition 0 of the output of map 0 (task %d) is lost: %s", out.Task, out.Path)) ||
				!strings.HasSuffix(f.Message, ": the map task must run again") {
				t.Errorf("the message is %q", f.Message)
			}
			want := &msg.FetchLost{Executor: "a", Shuffle: 1, Map: 0, Task: out.Task}
			if diff := cmp.Diff(want, f.Fetch); diff != "" {
				t.Errorf("what is lost (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAShuffleThatIsNotCompleteIsAFetchFailure(t *testing.T) {
	w := newWorld(t)
	var got []string
	f := w.fails(w.reduce(&got), msg.FailFetch, "shuffle 1: partition 0 cannot be read: 1 of 2 map outputs are missing")
	if f.Fetch == nil || f.Fetch.Map != -1 || f.Fetch.Shuffle != 1 {
		t.Errorf("what is lost: %+v", f.Fetch)
	}
}

func TestAMapTaskThatFailsLeavesNoFile(t *testing.T) {
	w := newWorld(t)
	for name, s := range map[string]script{
		"it gives up": func(g *puppet.Guest) int64 {
			write(g, open(g, abi.PortShuffleWrite, 1, 0), records("a", "b"))
			return failWith(g, abi.ErrUser, "no")
		},
		"it traps": func(g *puppet.Guest) int64 {
			write(g, open(g, abi.PortShuffleWrite, 1, 0), records("a", "b"))
			g.Trap()
			return 0
		},
		"it does not close": func(g *puppet.Guest) int64 {
			write(g, open(g, abi.PortShuffleWrite, 1, 0), records("a", "b"))
			return 0
		},
	} {
		if u := w.run(mapping(1), s); u.State != msg.StateFailed || u.MapOutput != nil {
			t.Errorf("%s: %+v", name, u)
		}
	}
	if names := left(t, w.dir); len(names) > 0 {
		t.Errorf("%v are left", names)
	}
}

func TestATaskReadsItsPiecesOfText(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.data, "in")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got string
	read := func(g *puppet.Guest) int64 {
		port := open(g, abi.PortText, 4, 0)
		got = readAll(g, port)
		closePort(g, port)
		return 0
	}
	launch := func(piece msg.Piece) msg.StatusUpdate {
		w.scripts[0] = read
		w.executor.Launch(msg.Launch{Stage: result(), Tasks: []msg.Task{{
			ID: w.next, Text: []msg.TextInput{{RDD: 4, Partition: 0, Pieces: []msg.Piece{piece}}},
		}}})
		w.next++
		return w.ended(1)[0]
	}
	u := w.finishes(launch(msg.Piece{Path: path, Offset: 2, Length: 12}))
	if got != "\x03two\x05three" || u.Metrics.InputRecords != 2 {
		t.Errorf("read %q, metrics %+v", got, u.Metrics)
	}
	gone := filepath.Join(w.data, "gone")
	w.fails(launch(msg.Piece{Path: gone, Length: 12}), msg.FailIO, "reading "+gone+": there is no such file or folder")
	w.fails(launch(msg.Piece{Path: "/etc/passwd", Length: 12}), msg.FailIO, "reading /etc/passwd is not allowed: add --allow-read /etc/passwd")
}

func TestASinkTaskLeavesAFileOnlyIfItFinishes(t *testing.T) {
	w := newWorld(t)
	s := result()
	s.Sink = &msg.Sink{Path: filepath.Join(w.data, "out"), Job: 2}
	if err := sink.Begin(w.executor.cfg.Files, *s.Sink); err != nil {
		t.Fatal(err)
	}
	attempts := filepath.Join(w.data, "out", "_temporary", "2")
	saves := func(end func(g *puppet.Guest, port uint32) int64) script {
		return func(g *puppet.Guest) int64 {
			port := open(g, abi.PortSink, 7, 0)
			write(g, port, "one\ntwo\n")
			return end(g, port)
		}
	}
	w.fails(w.run(s, saves(func(g *puppet.Guest, _ uint32) int64 { return failWith(g, abi.ErrUser, "no") })), msg.FailUser, "no")
	w.fails(w.run(s, saves(func(g *puppet.Guest, _ uint32) int64 { g.Trap(); return 0 })), msg.FailUser, "the guest trapped: unreachable in obey")
	const unfinished = "the task ended without opening and closing its sink port (see docs/abi.md)"
	w.fails(w.run(s, saves(func(*puppet.Guest, uint32) int64 { return 0 })), msg.FailUser, unfinished)
	w.fails(w.run(s, nothing), msg.FailUser, unfinished)
	if names := left(t, attempts); len(names) > 0 {
		t.Errorf("%v are left", names)
	}

	u := w.finishes(w.run(s, saves(func(g *puppet.Guest, port uint32) int64 { closePort(g, port); return 0 })))
	text, err := os.ReadFile(u.Output.Path)
	if err != nil || string(text) != "one\ntwo\n" || u.Output.Bytes != 8 || filepath.Dir(u.Output.Path) != attempts {
		t.Errorf("the output %+v has %q, %v", u.Output, text, err)
	}
}

func TestAResultOverTheDriversLimitFails(t *testing.T) {
	w := newWorld(t)
	u := w.run(result(), func(g *puppet.Guest) int64 {
		g.Grow(16)
		port := open(g, abi.PortResult, 7, 0)
		write(g, port, strings.Repeat("x", 600<<10))
		p, n := g.Put(make([]byte, 600<<10))
		g.Call(puppet.PortWrite, port, p, n)
		return failWith(g, abi.ErrFailed, "what the guest says of it does not matter")
	})
	w.fails(u, msg.FailUser, "the result of one task is 1.2 MiB or more, and all results of a job together may have 1.0 MiB: "+
		"collect less, save it with SaveAsTextFile, or raise quern.driver.maxResultSize")
}

// Ports used wrongly are the guest's mistakes, each with an answer of its own.
func TestPortsUsedWronglyAreBadArguments(t *testing.T) {
	w := newWorld(t)
	shuffled := result()
	shuffled.Reads = []abi.ShuffleDesc{{ID: 1, Partitioner: abi.PartitionHash, Partitions: 2}}
	u32 := func(n int) uint32 { return uint32(int32(n)) }
	for _, c := range []struct {
		name  string
		stage msg.Stage
		call  func(g *puppet.Guest) int64
		want  string
	}{
		{"text of another RDD", result(),
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortText), 4, 0) },
			"partition 0 of text RDD 4 is not an input of this task"},
		{"another shuffle", shuffled,
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortShuffleRead), 2, 0) },
			"shuffle 2 is not an input of this task"},
		{"a partition that the shuffle has not", shuffled,
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortShuffleRead), 1, 2) },
			"shuffle 1 has 2 partitions, none is 2"},
		{"a negative partition", shuffled,
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortShuffleRead), 1, u32(-1)) },
			"shuffle 1 has 2 partitions, none is -1"},
		{"the result of another action", result(),
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortResult), 8, 0) },
			"8 is not what this task writes"},
		{"a shuffle from a result task", result(),
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortShuffleWrite), 7, 0) },
			"this task has no port of kind 17"},
		{"a result from a map task", mapping(1),
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortResult), 1, 0) },
			"this task has no port of kind 16"},
		{"a sink that the action has not", result(),
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, uint32(abi.PortSink), 7, 0) },
			"this task has no port of kind 18"},
		{"an unknown kind", result(),
			func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, 99, 7, 0) },
			"this task has no port of kind 99"},
		{"a second output", result(),
			func(g *puppet.Guest) int64 {
				open(g, abi.PortResult, 7, 0)
				return g.Call(puppet.PortOpen, uint32(abi.PortResult), 7, 0)
			},
			"the task has opened its output port already"},
		{"reading what is written", result(),
			func(g *puppet.Guest) int64 {
				return g.Call(puppet.PortRead, open(g, abi.PortResult, 7, 0), g.Room(), 10)
			},
			"the port goes in the other direction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			var code int64
			var text string
			u := w.run(c.stage, func(g *puppet.Guest) int64 {
				code, text = c.call(g), g.LastError()
				return 0
			})
			if code != int64(abi.ErrBadArgument) || text != "bad argument: "+c.want {
				t.Errorf("the guest is told %d, %q", code, text)
			}
			// It cannot turn that into a success.
			w.fails(u, msg.FailUser, "bad argument: "+c.want)
		})
	}
	t.Run("a port that is not open", func(t *testing.T) {
		w.t = t
		w.finishes(w.run(result(), func(g *puppet.Guest) int64 {
			port := open(g, abi.PortResult, 7, 0)
			closePort(g, port)
			for _, got := range []int64{
				g.Call(puppet.PortRead, port, g.Room(), 1), g.Call(puppet.PortWrite, port, g.Room(), 1),
				g.Call(puppet.PortClose, port), g.Call(puppet.PortClose, 1<<31), g.Call(puppet.PortClose, ^uint32(0)),
			} {
				if got != int64(abi.ErrBadArgument) {
					t.Errorf("the guest is told %d", got)
				}
			}
			return 0
		}))
	})
}
