package shuffle

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// tinyDisk mounts a file system of 1 MiB. It needs the right to mount.
func tinyDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mounting a file system of 1 MiB to fill (run the test as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("something is still open on the disk: %v", err)
		}
	})
	return dir
}

// noise makes batches that do not compress.
func noise(n int) (batches [][]byte) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range n {
		var b []byte
		for range 30 {
			b = randomRecord(b, rnd)
		}
		batches = append(batches, b)
	}
	return batches
}

func wantFull(t *testing.T, dir string, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the error is %v", err)
	}
	for _, part := range []string{"the disk is full", dir, "quern.local.dir", "shuffle 1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in the message: %v", part, err)
		}
	}
}

func TestAFullDiskIsNamedAndNothingIsLeft(t *testing.T) {
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 3, Sorted: true}
	for name, limit := range map[string]int64{"in Commit": 0, "while spilling": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tinyDisk(t), 64<<20)
			w.task(limit, func(c Config) {
				wr, err := NewWriter(c, d, 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				defer wr.Abort()
				for _, b := range noise(1000) {
					if err = wr.Write(b); err != nil {
						break
					}
				}
				if limit == 0 && err == nil {
					_, err = wr.Commit()
				}
				wantFull(t, w.dir, err)
			})
			if left := w.files(); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
	t.Run("when many maps are merged", func(t *testing.T) {
		src := newWorld(t, t.TempDir(), 64<<20)
		var outs []msg.MapOutput
		for m := range 60 {
			out, _ := src.write(0, d, m, noise(80)...)
			outs = append(outs, out)
		}
		w := newWorld(t, tinyDisk(t), 64<<20)
		w.task(2<<20, func(c Config) {
			r, err := NewReader(c, d, 0, outs)
			if err == nil {
				r.Close()
			}
			wantFull(t, w.dir, err)
		})
		if left := w.files(); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	})
	t.Run("after which there is room again", func(t *testing.T) {
		w := newWorld(t, tinyDisk(t), 64<<20)
		batches := noise(20)
		out, _ := w.write(0, d, 0, batches...)
		n := 0
		for p := range d.Partitions {
			got, _ := w.read(0, d, p, abi.BatchSize, out)
			n += len(got)
		}
		if n != len(bytes.Join(batches, nil)) {
			t.Errorf("%d bytes were read", n)
		}
	})
}
