// Package e2e runs jobs as users do: the quern binary, modules made by the Go
// compiler, files. This file makes the world in which the tests take place.
package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/internal/scratchdir"
)

// world is what all tests share: a folder with the binary, the jobs, and quern's
// caches.
type world struct{ dir string }

var theWorld world

func TestMain(m *testing.M) {
	os.Exit(inWorld(m.Run))
}

// inWorld makes the world, runs the tests in it and removes it.
func inWorld(tests func() int) int {
	dir, err := scratchdir.New(os.TempDir(), "quern-e2e-")
	if err == nil {
		theWorld = world{dir.Path}
		defer dir.Remove()
		err = theWorld.make()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building what the tests run:", err)
		return 1
	}
	return tests()
}

func (w world) make() error {
	for _, folder := range []string{"jobs", "native", "guests", "local"} {
		if err := os.Mkdir(filepath.Join(w.dir, folder), 0o777); err != nil {
			return err
		}
	}
	mains, err := filepath.Glob("testdata/*/main.go")
	if err != nil {
		return err
	}
	var guests []string
	for _, main := range mains {
		guests = append(guests, "./"+filepath.Dir(main))
	}
	toModules := []string{"GOOS=wasip1", "GOARCH=wasm"}
	return errors.Join(
		goBuild(w.quern(), []string{"CGO_ENABLED=0"}, "../../cmd/quern"),
		goBuild(w.job(""), toModules, "../../jobs/..."),
		goBuild(w.guest(""), toModules, guests...),
		goBuild(w.native(""), []string{"CGO_ENABLED=0"}, "../../jobs/..."),
	)
}

func (w world) quern() string { return filepath.Join(w.dir, "quern") }

// job is the module of a folder in jobs.
func (w world) job(name string) string { return w.dir + "/jobs/" + name }

// native is the same program for this machine; it evaluates in its own process.
func (w world) native(name string) string { return w.dir + "/native/" + name }

// guest is the module of a folder in testdata.
func (w world) guest(name string) string { return w.dir + "/guests/" + name }

// goBuild compiles packages into a file, or a folder if out ends with a slash.
func goBuild(out string, environ []string, packages ...string) error {
	c := exec.Command("go", append([]string{"build", "-o", out}, packages...)...)
	c.Env = append(os.Environ(), environ...)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", packages, err, text)
	}
	return nil
}

// result is what a process leaves behind.
type result struct {
	stdout, stderr string
	code           int
}

// patience is how long a process may take before the test gives up. Only what
// hangs comes near it.
const patience = 3 * time.Minute

// run runs quern in a folder of the test's own, to its end.
func run(t testing.TB, args ...string) result {
	t.Helper()
	return runIn(t, t.TempDir(), theWorld.quern(), args...)
}

// runIn runs a program in a folder, to its end.
func runIn(t testing.TB, dir, program string, args ...string) result {
	t.Helper()
	c, stdout, stderr := command(t, dir, program, args...)
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %s: %v\n%s", c, err, stderr)
	}
	return result{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// runGuest runs a job of testdata in a folder, to its end, and sees to it that
// nothing is left in quern.local.dir.
func runGuest(t testing.TB, dir string, flags []string, job string, args ...string) result {
	t.Helper()
	local := t.TempDir()
	line := slices.Concat([]string{"run", "--conf", "quern.local.dir=" + local}, flags, []string{theWorld.guest(job)}, args)
	r := runIn(t, dir, theWorld.quern(), line...)
	if left := namesIn(t, local); len(left) > 0 {
		t.Errorf("%q leaves %q in quern.local.dir", args, left)
	}
	return r
}

// namesIn are the paths of all files and folders below a folder, in order.
func namesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if path != "." {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// compare reports where what a run said differs from what it should say.
func compare(t testing.TB, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// command is a program in a folder that is killed with the test or when patience
// ends, and the buffers that take what it says.
func command(t testing.TB, dir, program string, args ...string) (c *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c = exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(),
		"QUERN_CACHE_DIR="+filepath.Join(theWorld.dir, "cache"),
		"QUERN_LOCAL_DIR="+filepath.Join(theWorld.dir, "local"))
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	c.Stdout, c.Stderr = stdout, stderr
	return c, stdout, stderr
}
