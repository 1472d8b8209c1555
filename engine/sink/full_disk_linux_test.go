package sink

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quern-project/quern/engine/msg"
)

// fullDiskFolder names the folder that the test's second process puts a tiny
// disk on.
const fullDiskFolder = "SINK_TEST_FULL_DISK_FOLDER"

// A mount needs rights and would outlive a killed test, so the test goes on in a
// second process, which has mounts of its own.
func TestFullDisk(t *testing.T) {
	if folder := os.Getenv(fullDiskFolder); folder != "" {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=1m,nr_inodes=20"); err != nil {
			t.Fatalf("mounting a tiny disk: %v", err)
		}
		onFullDisk(t, folder)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), fullDiskFolder+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
		t.Errorf("on a tiny disk: %v\n%s", err, out)
	}
}

func onFullDisk(t *testing.T, folder string) {
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 64<<10) // does not get smaller by packing
	random.Read(noise)
	for _, compression := range []string{"", "gzip", "zstd"} {
		w := worldIn(t, folder)
		s := w.sink("out"+compression, compression)
		w.begin(s)
		kept := w.attempt(s, 0, 1, string(noise))
		wr, err := NewWriter(w.grants, w, s, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; err == nil; n++ {
			if n > 100 {
				t.Fatalf("%q: a disk of 1 MiB takes 6 MiB", compression)
			}
			random.Read(noise)
			_, err = wr.Write(noise)
		}
		if !errors.Is(err, syscall.ENOSPC) ||
			!strings.HasPrefix(err.Error(), "writing "+s.Path+"/_temporary/7/part-00001-2") ||
			!strings.HasSuffix(err.Error(), ": the disk is full: free some space, or use another disk") {
			t.Errorf("%q: error %v, want one that names the file and the full disk", compression, err)
		}
		if _, again := wr.Write(noise); again == nil || again.Error() != err.Error() {
			t.Errorf("%q: writing on: %v, want the same error", compression, again)
		}
		if _, closing := wr.Close(); closing == nil || closing.Error() != err.Error() {
			t.Errorf("%q: closing: %v, want the same error", compression, closing)
		}
		// The attempt gave its space back, so the next one has room.
		other := w.attempt(s, 1, 3, "small\n")
		if err := Commit(w.grants, s, []msg.SinkOutput{kept, other}); err != nil {
			t.Errorf("%q: %v", compression, err)
		}
		if err := os.RemoveAll(s.Path); err != nil {
			t.Fatal(err)
		}
	}

	// What fills up while the last bytes are written out fails on Close.
	w := worldIn(t, folder)
	s := w.sink("out", "")
	w.begin(s)
	filler := filepath.Join(folder, "filler")
	fill := func() {
		if err := os.WriteFile(filler, make([]byte, 2<<20), 0o666); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
	}
	fill()
	wr, err := NewWriter(w.grants, w, s, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wr.Write([]byte("small\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := wr.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closing on a full disk: %v", err)
	}
	if err := Abort(w.grants, s); err != nil {
		t.Error(err)
	}

	// Full before the job begins, of bytes and of files: nothing is left.
	fill()
	if err := Begin(w.grants, s); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("beginning on a full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for i := 0; err == nil; i++ {
		err = os.Mkdir(filepath.Join(folder, "filler"+string(rune('a'+i))), 0o777)
	}
	if err := os.Remove(filepath.Join(folder, "fillera")); err != nil {
		t.Fatal(err)
	}
	if err := Begin(w.grants, s); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("beginning with no file left: %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "filler") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	if _, err := os.Stat(s.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target: %v, want that there is none", err)
	}
}
