package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// inNamespace runs a shell's command line in a process that has users and mounts
// of its own. It is root there, but only of files that are the caller's, and what
// it mounts is gone with it, however it ends.
func inNamespace(t *testing.T, dir, line string, args ...string) result {
	t.Helper()
	c, stdout, stderr := command(t, dir, "/bin/sh", append([]string{"-c", line, "sh"}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	c.Run() // the exit code says it
	return result{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// A disk of 1 MiB is in the folder disk.
func TestFullDisk(t *testing.T) {
	const (
		onTinyDisk = `mount -t tmpfs -o size=1m tmpfs disk || exit 99
"$@"
code=$?
find disk -mindepth 1 >left
exit $code`
		noSpace = "the disk is full: free some space, or use another disk\n"
	)
	for name, c := range map[string]struct {
		args []string
		want []string // on standard error; DIR is the current folder
		left []string
	}{
		"output": {
			[]string{"--allow-write", "disk", theWorld.guest("faults"), "save", "disk/out", "4194304", "none"},
			[]string{"job 0 (saveAsTextFile at <saving>) failed: ", "writing DIR/disk/out/_temporary/0/part-0000", noSpace}, nil,
		},
		"compressed output": {
			[]string{"--allow-write", "disk", theWorld.guest("faults"), "save-gzip", "disk/new/out", "4194304", "none"},
			[]string{"job 0 (saveAsTextFile at <saving>) failed: ", "writing DIR/disk/new/out/_temporary/0/part-0000", noSpace}, nil,
		},
		"shuffle files": {
			[]string{"--conf", "quern.local.dir=disk", theWorld.guest("faults"), "shuffle", "4194304"},
			[]string{"job 0 (count at <shuffling>) failed: ", ": shuffle 1, output of map ", "write disk/quern-",
				"no space left on device: the disk is full: free space on it, or point quern.local.dir to another one\n"}, nil,
		},
		"spilled data": {
			[]string{"--conf", "quern.local.dir=disk", "--master", "local[1]", "--executor-memory", "48m", theWorld.guest("faults"), "shuffle", "120000000"},
			[]string{"job 0 (count at <shuffling>) failed: ", "spill", "write disk/quern-",
				"no space left on device: the disk is full: free space on it, or point quern.local.dir to another one\n"}, nil,
		},
		"compiled modules": {
			[]string{"--conf", "quern.cache.dir=disk/cache", theWorld.guest("faults"), "none"},
			[]string{"quern run: ", "the disk is full on which compiled programs are kept, in disk/cache/modules: " +
				"free space on it, or point quern.cache.dir to another one\n"},
			[]string{"disk/cache", "disk/cache/modules", "disk/cache/modules/secret"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"disk/hidden": ""})
			r := inNamespace(t, dir, onTinyDisk, append([]string{theWorld.quern(), "run", "--master", "local[2]"}, c.args...)...)
			if r.code == 99 {
				t.Fatalf("no disk can be mounted in a namespace of the test's own: %s", r.stderr)
			}
			stderr := strings.ReplaceAll(legible(t, "faults", r.stderr), dir, "DIR")
			if r.code != 1 {
				t.Errorf("exit code %d", r.code)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("it does not say %q but %s", want, stderr)
				}
			}
			text, err := os.ReadFile(filepath.Join(dir, "left"))
			if err != nil {
				t.Fatal(err)
			}
			left := strings.Fields(string(text))
			if slices.Sort(left); !slices.Equal(left, c.left) {
				t.Errorf("the disk has %q afterwards, want %q", left, c.left)
			}
		})
	}
}

// Nothing keeps root from reading, but files of somebody whom its namespace does
// not know.
func TestFilesOfOthers(t *testing.T) {
	const denied = "the system does not let this user do it (permission denied)\n"
	const inPartition = "job 0 (count at <reading>) failed: stage 0 (textFile at <reading>) partition "
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a file":             {[]string{"count", "theirs"}, inPartition + "0 failed: reading DIR/theirs: " + denied},
		"a folder":           {[]string{"count", "closed"}, "textFile at <reading>: reading DIR/closed: " + denied},
		"a file in a folder": {[]string{"count", "mine"}, inPartition + "1 failed: reading DIR/mine/theirs: " + denied},
		"a target": {[]string{"save", "closed/new/out", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/closed/new/out: writing DIR/closed/new/out: " + denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"theirs": "one\n", "closed/a": "one\n", "mine/a": "one\n", "mine/theirs": "two\n"})
			for _, path := range []string{"theirs", "closed", "mine/theirs"} {
				path = filepath.Join(dir, path)
				if err := os.Chmod(path, 0); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.Chmod(path, 0o700) })
				if os.Getuid() == 0 {
					if err := os.Chown(path, 1234, 1234); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := inNamespace(t, dir, `"$@"`, append([]string{theWorld.quern(), "run", "--master", "local[1]", "--allow-write", ".", theWorld.guest("faults")}, c.args...)...)
			stderr := strings.ReplaceAll(legible(t, "faults", r.stderr), dir, "DIR")
			if r.code != 1 {
				t.Errorf("exit code %d", r.code)
			}
			compare(t, "stderr", c.want, stderr)
		})
	}
}
