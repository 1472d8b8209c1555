// Package e2e runs jobs as users do: the quern binary, modules made by the Go
// compiler, files. This file makes the world in which the tests take place.
package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
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
	dir, err := os.MkdirTemp("", "quern-e2e-")
	if err == nil {
		theWorld = world{dir}
		defer os.RemoveAll(dir)
		err = theWorld.make()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building what the tests run:", err)
		return 1
	}
	return tests()
}

func (w world) make() error {
	for _, folder := range []string{"jobs", "native", "local"} {
		if err := os.Mkdir(filepath.Join(w.dir, folder), 0o777); err != nil {
			return err
		}
	}
	return errors.Join(
		goBuild(w.quern(), "../../cmd/quern", "CGO_ENABLED=0"),
		goBuild(filepath.Join(w.dir, "jobs")+"/", "../../jobs/...", "GOOS=wasip1", "GOARCH=wasm"),
		goBuild(filepath.Join(w.dir, "native")+"/", "../../jobs/...", "CGO_ENABLED=0"),
	)
}

func (w world) quern() string { return filepath.Join(w.dir, "quern") }

// job is the module of a folder in jobs.
func (w world) job(name string) string { return filepath.Join(w.dir, "jobs", name) }

// native is the same program for this machine; it evaluates in its own process.
func (w world) native(name string) string { return filepath.Join(w.dir, "native", name) }

// goBuild compiles packages into a file, or a folder if out ends with a slash.
func goBuild(out, packages string, environ ...string) error {
	c := exec.Command("go", "build", "-o", out, packages)
	c.Env = append(os.Environ(), environ...)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", packages, err, text)
	}
	return nil
}

// guest compiles a main package to a module, and returns its file.
func guest(t testing.TB, packageDir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(packageDir)+".wasm")
	if err := goBuild(file, packageDir, "GOOS=wasip1", "GOARCH=wasm"); err != nil {
		t.Fatal(err)
	}
	return file
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
