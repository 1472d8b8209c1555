package sink

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
)

// Memory is what a Writer draws the memory of its buffers from: an
// engine/memory.Task.
type Memory interface {
	Acquire(n int64) error
	Release(n int64)
}

const (
	bufferSize = 128 << 10
	// What packing takes, in bytes.
	gzipMemory = 1 << 20
	zstdMemory = 8 << 20
	// zstdWindow is a compromise: the default of 8 MiB makes files a little
	// smaller and takes 30 MiB in each task.
	zstdWindow = 1 << 20
)

// Writer writes the file of one attempt. It belongs to one goroutine, and ends
// with Close or Abort.
type Writer struct {
	g         *files.Grants
	mem       Memory
	acquired  int64
	partition int
	path      string
	file      *os.File
	written   int64 // to the file
	buffer    *bufio.Writer
	pack      io.WriteCloser // nil if the output is plain
	err       error          // the first failure, for good
}

// NewWriter makes the file of an attempt. Its memory comes from mem.
func NewWriter(g *files.Grants, mem Memory, s msg.Sink, partition int, task msg.TaskID) (*Writer, error) {
	suffix, err := suffix(s)
	if err != nil {
		return nil, err
	}
	w := &Writer{g: g, mem: mem, partition: partition}
	w.path = filepath.Join(attempts(s), fmt.Sprintf("%s-%d%s", partName(partition), task, suffix))
	need := map[string]int64{"": 0, "gzip": gzipMemory, "zstd": zstdMemory}[s.Compression] + bufferSize
	if err := mem.Acquire(need); err != nil {
		return nil, fmt.Errorf("writing %s: %w", w.path, err)
	}
	w.acquired = need
	if w.file, err = g.Create(w.path); err != nil {
		w.release()
		return nil, err
	}
	w.buffer = bufio.NewWriterSize(counting{w}, bufferSize)
	switch s.Compression {
	case "gzip":
		w.pack = gzip.NewWriter(w.buffer) // with no time and no name in its header
	case "zstd":
		w.pack, err = zstd.NewWriter(w.buffer, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow),
			zstd.WithLowerEncoderMem(true))
		if err != nil {
			w.Abort()
			return nil, fmt.Errorf("writing %s: preparing zstd: %w", w.path, err)
		}
	}
	return w, nil
}

// counting is the writer's file. It remembers the first failure, which names the
// file.
type counting struct{ w *Writer }

func (c counting) Write(b []byte) (int, error) {
	n, err := c.w.file.Write(b)
	c.w.written += int64(n)
	if err != nil && c.w.err == nil {
		c.w.err = files.Explain("writing", c.w.path, err)
	}
	return n, err
}

var errClosed = errors.New("the writer is closed")

// Write appends bytes to the output; it keeps nothing of b. After an error, such
// as of a full disk, the writer can only be aborted.
func (w *Writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	to := io.Writer(w.buffer)
	if w.pack != nil {
		to = w.pack
	}
	n, err := to.Write(b)
	return n, w.note(err)
}

// note keeps the first failure.
func (w *Writer) note(err error) error {
	if err != nil && w.err == nil {
		w.err = files.Explain("writing", w.path, err)
	}
	return w.err
}

// Close completes the file and describes it. When it fails the file is removed.
func (w *Writer) Close() (msg.SinkOutput, error) {
	if w.err != nil {
		err := w.err
		w.Abort()
		return msg.SinkOutput{}, err
	}
	if w.pack != nil {
		w.note(w.pack.Close())
	}
	w.note(w.buffer.Flush())
	err := w.note(w.file.Close())
	w.file = nil
	if err != nil {
		w.Abort()
		return msg.SinkOutput{}, err
	}
	w.err = files.Explain("writing", w.path, errClosed)
	w.release()
	return msg.SinkOutput{Partition: w.partition, Path: w.path, Bytes: w.written}, nil
}

// Abort gives up and removes the file. After Close it does nothing. A file that
// cannot be removed lies where Commit and Abort of the job will.
func (w *Writer) Abort() {
	if w.acquired == 0 {
		return
	}
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
	_ = w.g.Remove(w.path)
	w.note(errClosed)
	w.release()
}

func (w *Writer) release() {
	w.mem.Release(w.acquired)
	w.acquired = 0
	w.buffer, w.pack = nil, nil
}
