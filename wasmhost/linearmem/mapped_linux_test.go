package linearmem

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// file is a source whose pages lie in a memfd in order.
type file struct {
	fd     int
	data   []byte
	places []uint32
}

func (f *file) Places() []uint32  { return f.places }
func (f *file) File() int         { return f.fd }
func (f *file) Page(i int) []byte { return f.data[i*PageSize : (i+1)*PageSize] }

func newFile(t *testing.T, pages int) *file {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	f := &file{fd: fd, data: bytes.Repeat([]byte("0123456789abcdef"), pages*PageSize/16)}
	for i := range pages {
		f.places = append(f.places, uint32(i))
	}
	if _, err := unix.Write(fd, f.data); err != nil {
		t.Fatal(err)
	}
	return f
}

// Few written pages are written back and many are dropped; the result is the same,
// and the same without the kernel's help.
func TestReloadForgetsWhatWasWritten(t *testing.T) {
	const pages, length = 100, 120
	src := newFile(t, pages)
	for _, help := range []bool{true, false} {
		back, err := newMapped(200 * PageSize)
		if err != nil {
			t.Fatal(err)
		}
		m := back.(*mapped)
		if !help && m.dirty != nil {
			m.dirty.close()
			m.dirty = nil
		}
		if _, err := m.load(src, 0); err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Clone(src.data), make([]byte, (length-pages)*PageSize)...)
		for _, writes := range []int{0, 1, 30, maxWriteBack - 1, maxWriteBack, maxWriteBack + 1, 1000} {
			b, err := m.grow(length * PageSize)
			if err != nil {
				t.Fatal(err)
			}
			_ = b[4096*3] // read, not written
			for i := range writes {
				b[i*(len(b)/1000/smallPage)*smallPage+i] = 0xee
			}
			wroteBack := m.writeBack(length * PageSize)
			if wroteBack && (!help || writes > maxWriteBack) {
				t.Errorf("help=%v: %d pages were written back", help, writes)
			}
			if !wroteBack {
				if _, err = m.reload(length * PageSize); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(m.all[:length*PageSize], want) {
				t.Errorf("help=%v: after %d writes the content differs", help, writes)
			}
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
}

// The kernel of a machine that says it can tell which pages were written does so.
func TestKernelTellsWhatWasWritten(t *testing.T) {
	d := newDirtyPages()
	if d == nil {
		t.Log("this kernel does not tell; pages are dropped")
		return
	}
	defer d.close()
	b, err := unix.Mmap(-1, 0, 8*smallPage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	b[1*smallPage], b[2*smallPage], b[6*smallPage] = 1, 1, 1
	_ = b[4*smallPage]
	n, done, errno := d.scan(b)
	if errno != 0 || !done || n != 2 {
		t.Fatalf("%d regions, %v, %v", n, done, errno)
	}
	if a, b := d.regions[0], d.regions[1]; a.end-a.start != 2*smallPage || b.end-b.start != smallPage || b.start-a.start != 5*smallPage {
		t.Errorf("%+v", d.regions[:2])
	}
}
