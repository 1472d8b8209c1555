//go:build unix

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate says what lets others than this user write to or read path.
func checkPrivate(path string, info fs.FileInfo, mode fs.FileMode) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to this one (%d), who could put machine code into it: use another cache folder",
			path, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, so that others could read or change what is executed: run chmod %o %s",
			path, info.Mode().Perm(), mode, path)
	}
	return nil
}
