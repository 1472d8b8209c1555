package memory

import (
	"os"
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
	var page [2 * smallPage]byte
	if _, ok := d.find(page[:]); !ok {
		f.Close()
		return nil
	}
	return d
}

// find answers the written regions of b, which are at most maxWriteBack pages. ok
// is false if there are more or the kernel does not tell.
func (d *dirtyPages) find(b []byte) (regions []pageRegion, ok bool) {
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) &^ (smallPage - 1)
	d.arg = scanArg{
		size:     uint64(unsafe.Sizeof(d.arg)),
		start:    start,
		end:      start + uint64(len(b))&^(smallPage-1),
		vec:      uint64(uintptr(unsafe.Pointer(&d.regions))),
		vecLen:   maxWriteBack,
		maxPages: maxWriteBack,
		inverted: pageIsFile | pageIsZero,
		all:      pageIsFile | pageIsZero,
		any:      pageIsPresent | pageIsSwapped,
		wants:    pageIsPresent,
	}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, d.pagemap.Fd(), pagemapScan, uintptr(unsafe.Pointer(&d.arg)))
	if errno != 0 || d.arg.walkEnd != d.arg.end {
		return nil, false
	}
	return d.regions[:n], true
}

func (d *dirtyPages) close() error { return d.pagemap.Close() }
