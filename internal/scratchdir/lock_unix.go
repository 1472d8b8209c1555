//go:build linux || darwin

package scratchdir

import (
	"os"
	"syscall"
)

// lockDir locks a directory of this user's for as long as the file is open, in
// this process and no other; nil if it cannot. With wait it waits until it can.
func lockDir(path string, wait bool) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	info, err := f.Stat()
	if err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid() {
		for {
			if err = syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
				break
			}
		}
		if err == nil {
			return f
		}
	}
	f.Close()
	return nil
}
