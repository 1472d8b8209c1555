//go:build linux

package quern_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goCommand runs the go command that runs this test.
func goCommand(t *testing.T, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// buildJob compiles a job for the sandbox, from the SDK's sources alone.
func buildJob(t *testing.T, dir string) string {
	t.Helper()
	module := filepath.Join(t.TempDir(), "job.wasm")
	goCommand(t, []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS="}, "build", "-o", module, dir)
	return module
}

// engine runs jobs in real sandboxes.
type engine struct {
	t     *testing.T
	quern string
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	q := filepath.Join(t.TempDir(), "quern")
	goCommand(t, []string{"GOFLAGS="}, "build", "-o", q, "github.com/quern-project/quern/cmd/quern")
	return &engine{t, q}
}

// run returns what the job prints, and what the engine says of it.
func (e *engine) run(args ...string) (stdout, stderr string) {
	e.t.Helper()
	cmd := exec.Command(e.quern, append([]string{"run", "--no-progress"}, args...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("%v: %v\n%s%s", cmd, err, &out, &log)
	}
	return out.String(), log.String()
}

// TestInASandbox runs jobs as users do: compiled to WebAssembly, by the command
// line.
func TestInASandbox(t *testing.T) {
	module := buildJob(t, "./testdata/forkrules")
	e := newEngine(t)
	t.Run("the fork rules hold", func(t *testing.T) { forkRules(&engine{t, e.quern}, module) })
	t.Run("a task draws the same numbers in every run, on any number of cores, and when it is retried",
		func(t *testing.T) { sameNumbers(&engine{t, e.quern}, module) })
	t.Run("the whole surface gives what it gives natively", func(t *testing.T) { surface(&engine{t, e.quern}) })
}

func forkRules(e *engine, module string) {
	out, log := e.run("--master", "local[2]", module)
	line := regexp.MustCompile(`main\.go:\d+`)
	out, log = line.ReplaceAllString(out, "main.go:N"), line.ReplaceAllString(log, "main.go:N")
	want := strings.TrimPrefix(`
different: true
[100 210 120 230 140 250] <nil>
[100 1200 2100 3200 4100 5200] <nil>
seen by the driver: 0
[0 1 2] <nil>
in the driver a task: false
[true true true] <nil>
[parked] <nil>
in the driver it acts: <nil>
panic failed
index failed
exit failed
fatal failed
goexit failed
lock failed
1 <nil>
collect at main.go:N: interface {} cannot travel: it is an interface, whose dynamic type the other side does not know; use a concrete type
[(1,[1]) (0,[0])] <nil>
1 <nil>
`, "\n")
	if diff := cmp.Diff(want, out); diff != "" {
		e.t.Errorf("the job's output (-want +got):\n%s", diff)
	}
	for _, part := range []string{
		"map at main.go:N: panic: boom",
		"main.failures.func2",
		"index out of range [0] with length 0",
		"exit code 3",
		"runtime.Goexit",
		"deadlock",
	} {
		if !strings.Contains(log, part) {
			e.t.Errorf("no error contains %q:\n%s", part, log)
		}
	}
	if strings.Contains(log, "random generator was not found") {
		e.t.Error("the runtime's random generator was not found: see random_wasip1.go")
	}
}

func sameNumbers(e *engine, module string) {
	first, _ := e.run("--seed", "1", "--master", "local[1]", module, "show")
	parallel, _ := e.run("--seed", "1", "--master", "local[2]", module, "show")
	retried, _ := e.run("--seed", "1", "--master", "local[2,4]", module, "fail")
	other, _ := e.run("--seed", "2", "--master", "local[2]", module, "show")
	if first != parallel || first != retried {
		e.t.Errorf("one core:\n%s\ntwo cores:\n%s\nretried:\n%s", first, parallel, retried)
	}
	if first == other {
		e.t.Errorf("another seed gives the same numbers:\n%s", first)
	}
}

// surface compares a job that uses every exported function and method.
func surface(e *engine) {
	native := filepath.Join(e.t.TempDir(), "native")
	goCommand(e.t, nil, "build", "-o", native, "./testdata/surface")
	want, err := exec.Command(native).Output()
	if err != nil {
		e.t.Fatal(err)
	}
	sandbox, _ := e.run("--master", "local[2]", buildJob(e.t, "./testdata/surface"))
	equal(e.t, "natively and in the sandbox", strings.Split(string(want), "\n"), strings.Split(sandbox, "\n"))
}
