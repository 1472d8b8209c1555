//go:build unix && !linux

package memory

import "syscall"

func mapPages(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
}

// unmapPages only fails for what mapPages did not make, and then there is
// nothing to give back.
func unmapPages(b []byte) { _ = syscall.Munmap(b) }
