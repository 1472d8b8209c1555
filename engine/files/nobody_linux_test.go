package files

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs f without root's right to read everything. Linux checks access
// to files with an identity that each thread has for itself.
func asNobody(t *testing.T, folder string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	if _, err := unix.SetfsuidRetUid(nobody); err != nil {
		t.Fatal(err)
	}
	defer unix.SetfsuidRetUid(0)
	f()
}
