package scratchdir

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

const prefix = "quern-app-"

func names(t *testing.T, dir string) (names []string) {
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

// A process that is killed leaves its directory, and the next one removes it, but
// not the directory of one that lives, nor anybody else's.
func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	if dir := os.Getenv("QUERN_TEST_OWNED"); dir != "" {
		d, err := New(dir, prefix)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(filepath.Base(d.Path))
		bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	dir := t.TempDir()
	start := func() (*exec.Cmd, string) {
		c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		c.Env = append(os.Environ(), "QUERN_TEST_OWNED="+dir)
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stdin.Close()
			c.Process.Kill()
			c.Wait()
		})
		var name string
		if _, err := fmt.Fscan(stdout, &name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "shuffle_0_0_0.data"), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
		return c, name
	}
	_, alive := start()
	killed, dead := start()
	killed.Process.Kill()
	killed.Wait()

	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "mine"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, prefix+"link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"quern-2024", "quern-application", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	d, err := New(dir, prefix)
	if err != nil {
		t.Fatal(err)
	}
	<-d.swept
	want := []string{alive, filepath.Base(d.Path), prefix + "link", "quern-2024", "quern-application", "other"}
	slices.Sort(want)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q are there, want %q, without %s", got, want, dead)
	}
	if got := names(t, elsewhere); len(got) != 1 {
		t.Errorf("behind a link there is %q", got)
	}
	if got := names(t, filepath.Join(dir, alive)); len(got) != 1 {
		t.Errorf("the directory of one that lives has %q", got)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	if slices.Contains(names(t, dir), filepath.Base(d.Path)) {
		t.Error("the directory is still there when it was removed")
	}
}

// Many that start and end at once do not remove each other's directories.
func TestFoldersOfProcessesThatStartTogether(t *testing.T) {
	dir := t.TempDir()
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 30 {
				d, err := New(dir, prefix)
				if err != nil {
					t.Error(err)
					return
				}
				file := filepath.Join(d.Path, "x")
				if err := os.WriteFile(file, nil, 0o666); err != nil {
					t.Error(err)
				}
				<-d.swept
				if _, err := os.Stat(file); err != nil {
					t.Error(err)
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
