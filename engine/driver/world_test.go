package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/quern-project/quern/engine/conf"
	"github.com/quern-project/quern/engine/driver"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/internal/scratchdir"
)

// built is what all tests share: the jobs of testdata/jobs as a module, the
// command line that compiles modules, which is native when the tests run under
// the race detector, and where compiled ones are kept.
var built struct {
	jobs     []byte
	compiler []string
	cache    string
}

func TestMain(m *testing.M) {
	dir, err := scratchdir.New(os.TempDir(), "quern-driver-")
	if err == nil {
		err = build(dir.Path)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "building what the tests run:", err)
	} else if code = m.Run(); code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if dir != nil {
		dir.Remove()
	}
	os.Exit(code)
}

func build(dir string) error {
	module, quern := filepath.Join(dir, "jobs.wasm"), filepath.Join(dir, "quern")
	for _, c := range []*exec.Cmd{
		goBuild(module, "./testdata/jobs", "GOOS=wasip1", "GOARCH=wasm"),
		goBuild(quern, "../../cmd/quern", "CGO_ENABLED=0"),
	} {
		if text, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", c, err, text)
		}
	}
	built.compiler = []string{quern, "compile-module"}
	built.cache = filepath.Join(dir, "cache")
	var err error
	built.jobs, err = os.ReadFile(module)
	return err
}

func goBuild(out, pkg string, environ ...string) *exec.Cmd {
	c := exec.Command("go", "build", "-o", out, pkg)
	c.Env = append(os.Environ(), environ...)
	return c
}

// app is one application: how it is run and what became of it.
type app struct {
	t      *testing.T
	ctx    context.Context
	conf   map[string]string
	folder string // the job's current folder, in which it may write, too
	local  string // quern.local.dir

	onPrint func(line string) // called with each line that the driver prints, before it goes on
	onEvent func(event.Event) // called with each event
	onLog   func(line string) // called with each line of the log, such as what a task has printed

	stdout, stderr lines
	log            lines
	events         []event.Event // complete when run has returned
	code           int
	err            error
}

// lines collects text and calls somebody with each line.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	call func(string)
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.text.Write(b)
	l.mu.Unlock()
	for line := range bytes.Lines(b) {
		if l.call != nil {
			l.call(strings.TrimRight(string(line), "\n"))
		}
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newApp(t *testing.T, settings ...string) *app {
	t.Helper()
	a := &app{t: t, ctx: t.Context(), folder: t.TempDir(), local: t.TempDir(), conf: map[string]string{
		"quern.master": "local[2]", "quern.seed": "1",
	}}
	for _, s := range settings {
		k, v, _ := strings.Cut(s, "=")
		a.conf[k] = v
	}
	return a
}

// messages is a log that has a line for each message.
type messages struct{ to io.Writer }

func (m messages) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (m messages) WithAttrs([]slog.Attr) slog.Handler           { return m }
func (m messages) WithGroup(string) slog.Handler                { return m }
func (m messages) Handle(_ context.Context, r slog.Record) error {
	_, err := fmt.Fprintf(m.to, "%s %s\n", r.Level, r.Message)
	return err
}

// run runs a job to its end.
func (a *app) run(args ...string) *app {
	a.t.Helper()
	a.conf["quern.cache.dir"], a.conf["quern.local.dir"] = built.cache, a.local
	var settings []conf.Setting
	for k, v := range a.conf {
		settings = append(settings, conf.Setting{Key: k, Value: v, Source: conf.FromFlag})
	}
	c, err := conf.New().With(settings)
	if err != nil {
		a.t.Fatal(err)
	}
	grants, err := files.New(a.folder, nil, []string{a.folder})
	if err != nil {
		a.t.Fatal(err)
	}
	defer grants.Close()
	a.stdout.call, a.log.call = a.onPrint, a.onLog
	a.code, a.err = driver.Run(a.ctx, driver.Options{
		Wasm: built.jobs, Args: append([]string{"jobs"}, args...), Conf: c, Files: grants,
		Stdout: &a.stdout, Stderr: &a.stderr, Log: slog.New(messages{&a.log}), Compiler: built.compiler,
		Listeners: []event.Listener{event.ListenerFunc(func(e event.Event) {
			a.events = append(a.events, e)
			if a.onEvent != nil {
				a.onEvent(e)
			}
		})},
	})
	if info, err := os.Stat(a.local); err == nil && info.IsDir() {
		if left := a.left(a.local); len(left) > 0 {
			a.t.Errorf("quern.local.dir still has %v", left)
		}
	}
	return a
}

// succeeds asserts that the job has exited with 0.
func (a *app) succeeds() *app {
	a.t.Helper()
	if a.code != 0 || a.err != nil {
		a.t.Fatalf("exit code %d, error %v\nstdout: %s\nstderr: %s\nlog: %s", a.code, a.err, &a.stdout, &a.stderr, &a.log)
	}
	return a
}

// fails asserts that the job has exited with 1, which the jobs do when an action
// fails, and has printed all of these texts.
func (a *app) fails(texts ...string) *app {
	a.t.Helper()
	if a.code != 1 || a.err != nil {
		a.t.Fatalf("exit code %d, error %v\nstdout: %s\nstderr: %s\nlog: %s", a.code, a.err, &a.stdout, &a.stderr, &a.log)
	}
	return a.prints(texts...)
}

// prints asserts that the job has printed all of these texts.
func (a *app) prints(texts ...string) *app {
	a.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.stdout.String(), text) {
			a.t.Errorf("the job did not print %q but\n%s", text, &a.stdout)
		}
	}
	return a
}

// left is all that lies below a folder.
func (a *app) left(dir string) (names []string) {
	a.t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if path != dir {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return names
}

// eventsOf are the events of a type.
func eventsOf[E event.Event](a *app) (all []E) {
	for _, e := range a.events {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}
