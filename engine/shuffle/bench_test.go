//go:build unix

package shuffle

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// input makes batches of about n bytes.
func input(n int, record func(b []byte, rnd *rand.Rand) []byte) (batches [][]byte, size int64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for size < int64(n) {
		b := make([]byte, 0, abi.BatchSize+256)
		for len(b) < abi.BatchSize-256 {
			b = record(b, rnd)
		}
		batches = append(batches, b)
		size += int64(len(b))
	}
	return batches, size
}

// sortRecord has 100 bytes with a key of 10, as in gensort: a random key, a
// counter in hexadecimal, filler.
func sortRecord(b []byte, rnd *rand.Rand) []byte {
	var r [100]byte
	binary.BigEndian.PutUint64(r[:], rnd.Uint64())
	binary.BigEndian.PutUint16(r[8:], uint16(rnd.Uint64()))
	copy(r[10:], fmt.Sprintf("%032X", rnd.Uint64()))
	for i := 42; i < 100; i++ {
		r[i] = 'A' + byte(i/8)
	}
	return appendRecord(b, r[:10], r[10:])
}

// randomRecord is the same with values that do not compress.
func randomRecord(b []byte, rnd *rand.Rand) []byte {
	var r [104]byte
	for i := 0; i < 100; i += 8 {
		binary.LittleEndian.PutUint64(r[i:], rnd.Uint64())
	}
	return appendRecord(b, r[:10], r[10:100])
}

// wordRecord is a word with a count, words being as unequally frequent as in
// a text.
func wordRecord(b []byte, rnd *rand.Rand) []byte {
	u := rnd.Float64()
	word := int(1 / (u + 1.0/50000)) // Zipf, about
	key := fmt.Appendf(nil, "%x", uint32(word)*2654435761>>12)
	var v [8]byte
	v[7] = 1
	return appendRecord(b, key, v[:])
}

func intRecord(b []byte, rnd *rand.Rand) []byte {
	var k, v [8]byte
	binary.BigEndian.PutUint64(k[:], 1<<63+uint64(rnd.IntN(1_000_000)))
	binary.LittleEndian.PutUint64(v[:], rnd.Uint64()>>20)
	return appendRecord(b, k[:], v[:])
}

// cpuTimer measures the processor time of the process, which other load on the
// machine disturbs less than it does the time.
type cpuTimer struct {
	b     *testing.B
	start float64
}

func newCPUTimer(b *testing.B) cpuTimer { return cpuTimer{b: b, start: cpuSeconds(b)} }

func (c cpuTimer) seconds() float64 { return cpuSeconds(c.b) - c.start }

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func BenchmarkShuffle(b *testing.B) {
	type shape struct {
		name   string
		record func([]byte, *rand.Rand) []byte
	}
	shapes := []shape{{"sort100", sortRecord}, {"random100", randomRecord}, {"words", wordRecord}, {"ints", intRecord}}
	for _, s := range shapes {
		batches, size := input(64<<20, s.record)
		run := func(name string, d abi.ShuffleDesc, compression string, limit int64) {
			b.Run(s.name+"/"+name, func(b *testing.B) { benchShuffle(b, batches, size, d, compression, limit) })
		}
		d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 16, Sorted: true}
		run("sorted", d, "s2", 0)
		run("sorted-spill", d, "s2", 24<<20)
		run("sorted-none", d, "none", 0)
		run("sorted-zstd", d, "zstd", 0)
		d.Sorted = false
		run("unsorted", d, "s2", 0)
		d.Sorted, d.Partitions = true, 2000
		run("sorted-2000", d, "s2", 0)
	}
}

func benchShuffle(b *testing.B, batches [][]byte, size int64, d abi.ShuffleDesc, compression string, limit int64) {
	dir := b.TempDir()
	pool := memory.NewPool(1 << 30)
	defer pool.Close()
	var out msg.MapOutput
	var spills int
	write := func(b *testing.B) {
		mem := pool.NewTask(context.Background(), 1, limit)
		defer mem.Close()
		w, err := NewWriter(Config{Dir: dir, Compression: compression, Memory: mem}, d, 0, 1)
		if err != nil {
			b.Fatal(err)
		}
		for _, batch := range batches {
			if err := w.Write(batch); err != nil {
				b.Fatal(err)
			}
		}
		os.Remove(out.Path) // replacing a file makes some file systems write it to the disk at once
		if out, err = w.Commit(); err != nil {
			b.Fatal(err)
		}
		spills = w.Metrics().Spills
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		cpu := newCPUTimer(b)
		for b.Loop() {
			write(b)
		}
		b.ReportMetric(float64(size)*float64(b.N)/1e6/cpu.seconds(), "cpuMB/s")
		b.ReportMetric(float64(out.Bytes)/float64(size), "ratio")
		b.ReportMetric(float64(spills), "spills")
	})
	if out.Path == "" {
		write(b)
	}
	b.Run("read", func(b *testing.B) {
		b.SetBytes(size * 4)
		b.ReportAllocs()
		cpu := newCPUTimer(b)
		buf := make([]byte, abi.BatchSize)
		for b.Loop() {
			for p := range d.Partitions {
				mem := pool.NewTask(context.Background(), 1, 0)
				r, err := NewReader(Config{Dir: dir, Memory: mem}, d, p, []msg.MapOutput{out, out, out, out})
				if err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := r.Next(buf); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
				r.Close()
				mem.Close()
			}
		}
		b.ReportMetric(float64(size)*4*float64(b.N)/1e6/cpu.seconds(), "cpuMB/s")
	})
}

// BenchmarkSmallTasks is what a map task with a handful of records costs, and a
// reduce task that reads 8 such outputs.
func BenchmarkSmallTasks(b *testing.B) {
	dir := b.TempDir()
	pool := memory.NewPool(64 << 20)
	defer pool.Close()
	var batch []byte
	for i := range 50 {
		batch = appendRecord(batch, fmt.Sprint("key", i), "value")
	}
	d := abi.ShuffleDesc{ID: 1, Partitioner: abi.PartitionHash, Partitions: 8, Sorted: true}
	task := func(b *testing.B, f func(Config) error) {
		mem := pool.NewTask(context.Background(), 1, 0)
		defer mem.Close()
		if err := f(Config{Dir: dir, Memory: mem}); err != nil {
			b.Fatal(err)
		}
	}
	outs := make([]msg.MapOutput, 8)
	write := func(m int) func(Config) error {
		return func(c Config) error {
			w, err := NewWriter(c, d, m, msg.TaskID(m))
			if err != nil {
				return err
			}
			defer w.Abort()
			if err := w.Write(batch); err != nil {
				return err
			}
			os.Remove(outs[m].Path) // replacing a file makes some file systems write it to the disk at once
			outs[m], err = w.Commit()
			return err
		}
	}
	for m := range outs {
		task(b, write(m))
	}
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			task(b, write(0))
		}
	})
	b.Run("reduce", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, abi.BatchSize)
		for b.Loop() {
			task(b, func(c Config) error {
				r, err := NewReader(c, d, 3, outs)
				if err != nil {
					return err
				}
				defer r.Close()
				for err == nil {
					_, err = r.Next(buf)
				}
				if err == io.EOF {
					return nil
				}
				return err
			})
		}
	})
}
