package memory

import "syscall"

// hugePage is the size from which buffers are worth asking for large pages:
// records in them are read in random order, which costs a miss of the address
// cache each with small ones.
const hugePage = 2 << 20

func mapPages(n int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err == nil && n >= hugePage {
		_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) // a wish; a kernel without them refuses
	}
	return b, err
}

// unmapPages only fails for what mapPages did not make, and then there is
// nothing to give back.
func unmapPages(b []byte) { _ = syscall.Munmap(b) }
