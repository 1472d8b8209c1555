package linearmem

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A guest that runs a small task writes to a few dozen pages, the same ones each
// time. To drop them costs the removal of their mappings on all processors, and
// a page fault for each the next time. It is several times cheaper to write back
// what they held before. Since Linux 6.7 the kernel says which pages those are
// (PAGEMAP_SCAN): private copies are present and belong to no file.

// smallPage is the size of the kernel's pages. Where it is another one, pages
// are dropped.
const smallPage = 4 << 10

// maxWriteBack is the largest number of pages that are written back; of more,
// all are dropped. It bounds what an idle memory keeps: 1 MiB.
const maxWriteBack = 256

// dropEvery is the number of runs after which pages are dropped all the same. A
// page that was written back still counts as written, so those that only an
// earlier task wrote to would cost each later one something.
const dropEvery = 64

// slowScan is how long the kernel may look for written pages. It looks at every
// page that is present, which are many when a task has read all of a large
// image; then all are dropped once, and the tasks that follow are cheap again.
const slowScan = 100 * time.Microsecond

// dirtyPages finds written pages.
type dirtyPages struct {
	pagemap *os.File
	regions [maxWriteBack]pageRegion
	arg     scanArg
}

// scanArg is the kernel's struct pm_scan_arg.
type scanArg struct {
	size, flags               uint64
	start, end, walkEnd       uint64
	vec, vecLen, maxPages     uint64
	inverted, all, any, wants uint64
}

// pageRegion is the kernel's struct page_region.
type pageRegion struct {
	start, end, categories uint64
}

const (
	pagemapScan   = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5
)

// newDirtyPages answers nil if the kernel cannot tell.
func newDirtyPages() *dirtyPages {
	if os.Getpagesize() != smallPage {
		return nil
	}
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	d := &dirtyPages{pagemap: f}
	// An empty range finds nothing, or an error if the kernel cannot do it.
	if _, _, errno := d.scan(nil); errno != 0 {
		f.Close()
		return nil
	}
	return d
}

// find answers the written regions of b, which are at most maxWriteBack pages. ok
// is false if there are more, or the kernel does not tell, or takes too long.
func (d *dirtyPages) find(b []byte) (regions []pageRegion, ok bool) {
	begin := time.Now()
	n, done, errno := d.scan(b)
	if errno != 0 || !done || time.Since(begin) > slowScan {
		return nil, false
	}
	return d.regions[:n], true
}

// scan asks the kernel for the written regions of b. done is false if there are
// more than fit.
func (d *dirtyPages) scan(b []byte) (n int, done bool, errno unix.Errno) {
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	d.arg = scanArg{
		size:     uint64(unsafe.Sizeof(d.arg)),
		start:    start,
		end:      start + uint64(len(b)),
		vec:      uint64(uintptr(unsafe.Pointer(&d.regions))),
		vecLen:   maxWriteBack,
		maxPages: maxWriteBack,
		inverted: pageIsFile | pageIsZero,
		all:      pageIsFile | pageIsZero,
		any:      pageIsPresent | pageIsSwapped,
		wants:    pageIsPresent,
	}
	r, _, errno := unix.Syscall(unix.SYS_IOCTL, d.pagemap.Fd(), pagemapScan, uintptr(unsafe.Pointer(&d.arg)))
	return int(r), d.arg.walkEnd == d.arg.end, errno
}

func (d *dirtyPages) close() error { return d.pagemap.Close() }
