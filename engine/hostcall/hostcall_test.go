package hostcall_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/internal/puppet"
	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// engine is what lies behind the host functions in these tests: it notes what it
// is asked, and answers what the test has laid down.
type engine struct {
	asked []any
	// What the next calls answer.
	n    int
	err  error
	text string // of Conf, or what reads put into the buffer
	none bool   // Conf has no value
}

func (e *engine) note(v ...any) { e.asked = append(e.asked, v...) }

func (e *engine) OpenContext(d abi.ContextDesc) error { e.note(d); return e.err }
func (e *engine) Conf(key string) (string, bool)      { e.note(key); return e.text, !e.none }
func (e *engine) DefineRDD(d abi.RDDDesc) (int, error) {
	e.note(d)
	return e.n, e.err
}
func (e *engine) RunJob(i *sandbox.Instance, d abi.JobDesc) (uint32, error) {
	e.note(d)
	return uint32(e.n), e.err
}
func (e *engine) NextResult(_ context.Context, job uint32, buf []byte) (int, error) {
	e.note(job, len(buf))
	copy(buf, e.text)
	return e.n, e.err
}
func (e *engine) CloseJob(job uint32) error { e.note(job); return e.err }

func (e *engine) Info() (w [abi.TaskInfoWords]uint64) {
	for i := range w {
		w[i] = uint64(i + 1)
	}
	return w
}
func (e *engine) OpenPort(kind abi.PortKind, id uint32, partition int) (uint32, error) {
	e.note(kind, id, partition)
	return uint32(e.n), e.err
}
func (e *engine) ReadPort(port uint32, buf []byte) (int, error) {
	e.note(port, len(buf))
	copy(buf, e.text)
	return e.n, e.err
}
func (e *engine) WritePort(port uint32, b []byte) error { e.note(port, string(b)); return e.err }
func (e *engine) ClosePort(port uint32) error           { e.note(port); return e.err }
func (e *engine) Fail(code abi.Code, text string)       { e.note(code, text) }

// stage is where the puppet plays the driver or a task before an engine.
type stage struct {
	t      testing.TB
	world  *puppet.World
	image  *image.Image
	script puppet.Script
	log    strings.Builder
	engine engine
}

func newStage(t testing.TB) *stage {
	s := &stage{t: t}
	s.world = puppet.New(t, hostcall.Functions(), func(any) puppet.Script { return s.script })
	s.image = s.world.Image(t)
	return s
}

func (s *stage) logger() *slog.Logger {
	s.log.Reset()
	return slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// driver runs a script as the driver, task one as a task; both before a fresh
// engine.
func (s *stage) driver(script puppet.Script) error {
	s.script, s.engine = script, engine{}
	_, err := s.world.Program.Start(context.Background(), sandbox.DriverConfig{
		Env: &hostcall.Env{Driver: &s.engine, Log: s.logger()},
	})
	return err
}

func (s *stage) task(script puppet.Script) error {
	s.script, s.engine = script, engine{}
	slot := s.world.Program.NewSlot()
	defer slot.Close()
	_, _, err := slot.Run(context.Background(), sandbox.TaskConfig{
		Image: s.image,
		Env:   &hostcall.Env{Task: &s.engine, Log: s.logger()},
	})
	return err
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// asked compares what the engine was asked, and forgets it.
func (s *stage) asked(want ...any) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.engine.asked); diff != "" {
		s.t.Errorf("what the engine was asked (-want +got):\n%s", diff)
	}
	s.engine.asked = nil
}

// answers compares a result.
func (s *stage) answers(want, got int64) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("the host answered %d, want %d", got, want)
	}
}

func TestDescriptorsReachTheEngine(t *testing.T) {
	s := newStage(t)
	s.must(s.driver(func(g *puppet.Guest) int64 {
		open := abi.ContextDesc{Version: abi.Version, SDK: "puppet", AppName: "strings", Conf: map[string]string{"a": "b"}}
		p, n := g.Put(open.AppendCBOR(nil))
		s.answers(0, g.Call(puppet.ContextOpen, p, n))
		s.asked(open)

		s.engine.n = 7
		rdd := abi.RDDDesc{ID: 3, Name: "map", CallSite: "main.go:9", Deps: []abi.DepDesc{{Parent: 2, Kind: abi.DepOneToOne}}}
		p, n = g.Put(rdd.AppendCBOR(nil))
		s.answers(7, g.Call(puppet.RDDDefine, p, n))
		s.asked(rdd)

		job := abi.JobDesc{RDD: 3, Action: 1, Name: "count", Partitions: []int{4, 2}, Sink: &abi.SinkDesc{Path: "out"}}
		p, n = g.Put(job.AppendCBOR(nil))
		s.answers(7, g.Call(puppet.JobRun, p, n))
		s.asked(job)

		s.answers(0, g.Call(puppet.JobClose, 7))
		s.asked(uint32(7))
		return 0
	}))
}

func TestADescriptorThatDoesNotDecodeIsABadArgument(t *testing.T) {
	s := newStage(t)
	s.must(s.driver(func(g *puppet.Guest) int64 {
		for _, bad := range []string{"", "no CBOR", "\xa1\x01", "\xa1\x01\x61\x61" /* text for a number */} {
			p, n := g.Put([]byte(bad))
			for _, f := range []struct {
				call func(...uint32) int64
				what string
			}{
				{func(a ...uint32) int64 { return g.Call(puppet.ContextOpen, a...) }, "context"},
				{func(a ...uint32) int64 { return g.Call(puppet.RDDDefine, a...) }, "RDD"},
				{func(a ...uint32) int64 { return g.Call(puppet.JobRun, a...) }, "job"},
			} {
				s.answers(int64(abi.ErrBadArgument), f.call(p, n))
				if text := g.LastError(); !strings.HasPrefix(text, "bad argument: the "+f.what+" descriptor does not decode: ") {
					t.Errorf("%s descriptor %q: %s", f.what, bad, text)
				}
				g.Put([]byte(bad)) // where the error was read to
			}
		}
		s.asked()
		return 0
	}))
}

func TestHugeDescriptorsAreNotDecoded(t *testing.T) {
	s := newStage(t)
	s.must(s.driver(func(g *puppet.Guest) int64 {
		s.answers(int64(abi.ErrBadArgument), g.Call(puppet.RDDDefine, g.Room(), abi.MaxDescriptor+1))
		if text, want := g.LastError(), "bad argument: the RDD descriptor has 67108865 bytes, the limit is 67108864"; text != want {
			t.Errorf("last_error is %q, want %q", text, want)
		}
		s.asked()
		return 0
	}))
}

func TestAnotherVersionOfTheABIIsRefused(t *testing.T) {
	s := newStage(t)
	s.must(s.driver(func(g *puppet.Guest) int64 {
		d := abi.ContextDesc{Version: abi.Version + 1, SDK: "puppet/2"}
		p, n := g.Put(d.AppendCBOR(nil))
		s.answers(int64(abi.ErrVersion), g.Call(puppet.ContextOpen, p, n))
		want := fmt.Sprintf("the job speaks version %d of the ABI (puppet/2), this quern version %d: rebuild the job with this quern's SDK",
			abi.Version+1, abi.Version)
		if got := g.LastError(); got != want {
			t.Errorf("last_error is %q, want %q", got, want)
		}
		s.asked()
		return 0
	}))
}

// everyCall are calls of all functions with a valid pointer where they want one.
var everyCall = []struct {
	name     string
	call     func(g *puppet.Guest) int64
	ofDriver bool
	ofTask   bool
}{
	{abi.FnContextOpen, func(g *puppet.Guest) int64 { return g.Call(puppet.ContextOpen, g.Room(), 0) }, true, false},
	{abi.FnConfGet, func(g *puppet.Guest) int64 { return g.Call(puppet.ConfGet, g.Room(), 1, g.Room(), 1) }, true, false},
	{abi.FnRDDDefine, func(g *puppet.Guest) int64 { return g.Call(puppet.RDDDefine, g.Room(), 0) }, true, false},
	{abi.FnJobRun, func(g *puppet.Guest) int64 { return g.Call(puppet.JobRun, g.Room(), 0) }, true, false},
	{abi.FnJobNext, func(g *puppet.Guest) int64 { return g.Call(puppet.JobNext, 0, g.Room(), 1) }, true, false},
	{abi.FnJobClose, func(g *puppet.Guest) int64 { return g.Call(puppet.JobClose, 0) }, true, false},
	{abi.FnTaskInfo, func(g *puppet.Guest) int64 { return g.Call(puppet.TaskInfo, g.Room(), 100) }, false, true},
	{abi.FnPortOpen, func(g *puppet.Guest) int64 { return g.Call(puppet.PortOpen, 1, 2, 3) }, false, true},
	{abi.FnPortRead, func(g *puppet.Guest) int64 { return g.Call(puppet.PortRead, 0, g.Room(), 1) }, false, true},
	{abi.FnPortWrite, func(g *puppet.Guest) int64 { return g.Call(puppet.PortWrite, 0, g.Room(), 1) }, false, true},
	{abi.FnPortClose, func(g *puppet.Guest) int64 { return g.Call(puppet.PortClose, 0) }, false, true},
	{abi.FnTaskFail, func(g *puppet.Guest) int64 { return g.Call(puppet.TaskFail, 0, g.Room(), 1) }, false, true},
	{abi.FnLastError, func(g *puppet.Guest) int64 { return g.Call(puppet.LastError, g.Room(), 1) }, true, true},
	{abi.FnLog, func(g *puppet.Guest) int64 { return g.Call(puppet.Log, 0, g.Room(), 1) }, true, true},
}

func TestTheTestsKnowAllFunctions(t *testing.T) {
	for i, f := range hostcall.Functions() {
		if i >= len(everyCall) || everyCall[i].name != f.Name {
			t.Errorf("%s is not among them, or not in its place", f.Name)
		}
	}
}

func TestCallsOfTheOtherSideAreRefused(t *testing.T) {
	s := newStage(t)
	s.must(s.driver(func(g *puppet.Guest) int64 {
		for _, f := range everyCall {
			if got := f.call(g); f.ofDriver == (got == int64(abi.ErrInDriver)) {
				t.Errorf("%s in the driver answers %d", f.name, got)
			} else if text := g.LastError(); !f.ofDriver && text != f.name+": this call is for tasks, and this is the driver" {
				t.Errorf("%s in the driver: %s", f.name, text)
			}
		}
		return 0
	}))
	s.must(s.task(func(g *puppet.Guest) int64 {
		for _, f := range everyCall {
			if got := f.call(g); f.ofTask == (got == int64(abi.ErrInTask)) {
				t.Errorf("%s in a task answers %d", f.name, got)
			} else if text := g.LastError(); !f.ofTask && text != f.name+": this call is for the driver, and this is a task" {
				t.Errorf("%s in a task: %s", f.name, text)
			}
		}
		return 0
	}))
}

func TestMemoryThatTheGuestDoesNotHaveIsABadArgument(t *testing.T) {
	s := newStage(t)
	const far = 1 << 31
	outside := func(g *puppet.Guest, calls map[string]int64) {
		t.Helper()
		for name, got := range calls {
			if got != int64(abi.ErrBadArgument) {
				t.Errorf("%s answers %d", name, got)
			}
		}
		if text := g.LastError(); !strings.Contains(text, "outside of the module's memory") {
			t.Errorf("last_error is %q", text)
		}
	}
	s.must(s.driver(func(g *puppet.Guest) int64 {
		end := uint32(len(g.Memory()))
		outside(g, map[string]int64{
			"context_open":                g.Call(puppet.ContextOpen, far, 1),
			"conf_get of a key":           g.Call(puppet.ConfGet, end-1, 2, g.Room(), 1),
			"conf_get into a buffer":      g.Call(puppet.ConfGet, g.Room(), 1, far, 1),
			"rdd_define":                  g.Call(puppet.RDDDefine, end-1, 2),
			"job_run":                     g.Call(puppet.JobRun, ^uint32(0), 1),
			"job_next":                    g.Call(puppet.JobNext, 0, end, 1),
			"log":                         g.Call(puppet.Log, 0, end-5, 6),
			"last_error":                  g.Call(puppet.LastError, far, 1),
			"conf_get with an empty edge": g.Call(puppet.ConfGet, end+1, 0, g.Room(), 1),
		})
		s.asked()
		return 0
	}))
	s.must(s.task(func(g *puppet.Guest) int64 {
		outside(g, map[string]int64{
			"task_info":  g.Call(puppet.TaskInfo, far, 100),
			"port_read":  g.Call(puppet.PortRead, 0, far, 1),
			"port_write": g.Call(puppet.PortWrite, 0, far, 1),
			"task_fail":  g.Call(puppet.TaskFail, 0, far, 1),
		})
		s.asked()
		return 0
	}))
}

func TestAValueIsWrittenAsAWholeOrNotAtAll(t *testing.T) {
	s := newStage(t)
	s.must(s.driver(func(g *puppet.Guest) int64 {
		s.engine.text = "value"
		key, n := g.Put([]byte("some.key"))
		room := g.Room() + 100
		s.answers(5, g.Call(puppet.ConfGet, key, n, room, 4))
		if got := string(g.Get(room, 5)); got != "\x00\x00\x00\x00\x00" {
			t.Errorf("without room for it, the value was written: %q", got)
		}
		s.answers(5, g.Call(puppet.ConfGet, key, n, room, 5))
		if got := string(g.Get(room, 5)); got != "value" {
			t.Errorf("the value is %q", got)
		}
		s.asked("some.key", "some.key")

		s.engine.none = true
		s.answers(int64(abi.ErrNotFound), g.Call(puppet.ConfGet, key, n, room, 5))
		if got := g.LastError(); got != `configuration key "some.key" is not set` {
			t.Errorf("last_error is %q", got)
		}
		if got := g.Call(puppet.LastError, room, 3); got != int64(len(`configuration key "some.key" is not set`)) {
			t.Errorf("last_error answers %d without room", got)
		}
		return 0
	}))
	s.must(s.task(func(g *puppet.Guest) int64 {
		const length = 8 * abi.TaskInfoWords
		s.answers(length, g.Call(puppet.TaskInfo, g.Room(), length-1))
		if got := g.Get(g.Room(), length); slices.ContainsFunc(got, func(b byte) bool { return b != 0 }) {
			t.Errorf("without room for it, task_info was written: %v", got)
		}
		s.answers(length, g.Call(puppet.TaskInfo, g.Room(), length))
		for i := range abi.TaskInfoWords {
			if got := binary.LittleEndian.Uint64(g.Get(g.Room()+uint32(8*i), 8)); got != uint64(i+1) {
				t.Errorf("word %d of task_info is %d", i, got)
			}
		}
		return 0
	}))
}

func TestReadsAnswerALengthTheEndOrAFailure(t *testing.T) {
	s := newStage(t)
	read := func(g *puppet.Guest, function func(args ...uint32) int64) {
		t.Helper()
		try := func(n int, err error) int64 {
			s.engine.n, s.engine.err, s.engine.text = n, err, "abc"
			return function(9, g.Room(), 8)
		}
		s.answers(3, try(3, nil))
		if got := string(g.Get(g.Room(), 3)); got != "abc" {
			t.Errorf("read %q", got)
		}
		s.answers(1000, try(1000, nil)) // more than the buffer: come back with a larger one
		s.asked(uint32(9), 8, uint32(9), 8)
		s.answers(0, try(0, io.EOF))
		// A failure that was caused by the end of some file is no end.
		s.answers(int64(abi.ErrFailed), try(0, fmt.Errorf("reading part 3: %w", io.EOF)))
		if got := g.LastError(); got != "reading part 3: EOF" {
			t.Errorf("last_error is %q", got)
		}
		s.answers(int64(abi.ErrCancelled), try(0, fmt.Errorf("waiting: %w", context.Canceled)))
		s.answers(int64(abi.ErrBadArgument), try(0, fmt.Errorf("%w: no such thing", hostcall.ErrBadArgument)))
	}
	s.must(s.driver(func(g *puppet.Guest) int64 {
		read(g, func(a ...uint32) int64 { return g.Call(puppet.JobNext, a...) })
		return 0
	}))
	s.must(s.task(func(g *puppet.Guest) int64 {
		read(g, func(a ...uint32) int64 { return g.Call(puppet.PortRead, a...) })
		return 0
	}))
}

func TestPortsReachTheEngine(t *testing.T) {
	s := newStage(t)
	s.must(s.task(func(g *puppet.Guest) int64 {
		s.engine.n = 5
		s.answers(5, g.Call(puppet.PortOpen, uint32(abi.PortShuffleRead), 3, ^uint32(0)))
		s.asked(abi.PortShuffleRead, uint32(3), -1)
		p, n := g.Put([]byte("batch"))
		s.answers(0, g.Call(puppet.PortWrite, 5, p, n))
		s.answers(0, g.Call(puppet.PortClose, 5))
		s.asked(uint32(5), "batch", uint32(5))

		s.engine.err = errors.New("the disk is full")
		for _, got := range []int64{
			g.Call(puppet.PortOpen, 1, 2, 3), g.Call(puppet.PortWrite, 5, p, n), g.Call(puppet.PortClose, 5),
		} {
			s.answers(int64(abi.ErrFailed), got)
		}
		if got := g.LastError(); got != "the disk is full" {
			t.Errorf("last_error is %q", got)
		}
		return 0
	}))
}

func TestTextsOfGuestsAreBoundedAndValid(t *testing.T) {
	s := newStage(t)
	const kept = 64 << 10
	s.must(s.task(func(g *puppet.Guest) int64 {
		g.Grow(4)
		p, n := g.Put([]byte("panic: \xff\xfe!\nmain.go:3"))
		code := abi.ErrPanic
		s.answers(0, g.Call(puppet.TaskFail, uint32(code), p, n))
		s.asked(abi.ErrPanic, "panic: �!\nmain.go:3")
		p, n = g.Put([]byte(strings.Repeat("a", kept+10)))
		s.answers(0, g.Call(puppet.TaskFail, uint32(code), p, n))
		s.asked(abi.ErrPanic, strings.Repeat("a", kept)+" … (10 bytes more)")

		for level, text := range []string{"fine", "good to know", "careful", "oh no", "what level is this"} {
			p, n := g.Put([]byte(text))
			s.answers(0, g.Call(puppet.Log, uint32(level), p, n))
		}
		return 0
	}))
	want := `level=DEBUG msg=fine
level=INFO msg="good to know"
level=WARN msg=careful
level=ERROR msg="oh no"
level=ERROR msg="what level is this"
`
	if diff := cmp.Diff(want, s.log.String()); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// FuzzCalls makes any calls with any parameters from both sides, on a memory
// full of whatever the fuzzer thinks of. Each call is four bits of function and
// four numbers; a guest can get a failure for it, but never the host.
func FuzzCalls(f *testing.F) {
	call := func(function byte, args ...uint32) []byte {
		b := []byte{function}
		for i := range 4 {
			var a uint32
			if i < len(args) {
				a = args[i]
			}
			b = binary.LittleEndian.AppendUint32(b, a)
		}
		return b
	}
	s := newStage(f)
	var all []byte
	for function := range byte(14) {
		all = append(all, call(function, 100<<10, 20, 100<<10, 8)...)
		all = append(all, call(function, ^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0))...)
	}
	f.Add(all, []byte("memory"))
	context := abi.ContextDesc{Version: abi.Version, AppName: "a", Conf: map[string]string{"k": "v"}}
	f.Add(call(0, 100<<10, uint32(len(context.AppendCBOR(nil)))), context.AppendCBOR(nil))
	rdd := abi.RDDDesc{ID: 1, Name: "textFile", Text: &abi.TextDesc{Paths: []string{"in"}},
		Deps: []abi.DepDesc{{Parent: 1, Kind: abi.DepShuffle, Shuffle: &abi.ShuffleDesc{ID: 1, Partitions: 2, Bounds: [][]byte{{1}}}}}}
	f.Add(call(2, 100<<10, uint32(len(rdd.AppendCBOR(nil)))), rdd.AppendCBOR(nil))
	job := abi.JobDesc{RDD: 1, Action: 2, Partitions: []int{0, 1}, Sink: &abi.SinkDesc{Path: "out", Compression: "gzip"}}
	f.Add(call(3, 100<<10, uint32(len(job.AppendCBOR(nil)))), job.AppendCBOR(nil))

	f.Fuzz(func(t *testing.T, calls, memory []byte) {
		script := func(g *puppet.Guest) int64 {
			g.Put(memory[:min(len(memory), 16<<10)])
			for rest := calls; len(rest) >= 17; rest = rest[17:] {
				var args [4]uint32
				for i := range args {
					args[i] = binary.LittleEndian.Uint32(rest[1+4*i:])
				}
				g.Call(puppet.ContextOpen+puppet.Operation(rest[0]%14), args[:]...)
				g.LastError()
			}
			return 0
		}
		if err := s.driver(script); err != nil {
			t.Fatalf("driver: %v", err)
		}
		if err := s.task(script); err != nil {
			t.Fatalf("task: %v", err)
		}
	})
}
