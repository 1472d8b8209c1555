package image

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestReleasedChunksTakeNoMemory(t *testing.T) {
	s, err := NewStore(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	used := func() int64 {
		var st unix.Stat_t
		if err := unix.Fstat(s.pool.file(), &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	one := capture(t, s, "abcdefgh", nil)
	two := capture(t, s, "abXdefgh", one)
	if got := used(); got != 9*ChunkSize {
		t.Errorf("9 chunks take %d bytes", got)
	}
	one.Release()
	if got := used(); got != 8*ChunkSize {
		t.Errorf("8 chunks take %d bytes", got)
	}
	two.Release()
	if got := used(); got != 0 {
		t.Errorf("no chunks take %d bytes", got)
	}
}
