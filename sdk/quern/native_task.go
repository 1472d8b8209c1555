//go:build !wasip1

package quern

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/quern-project/quern/sdk/abi"
)

// nativeTask is one running task. mu guards what a closure's goroutines may
// reach together.
type nativeTask struct {
	stage     *nativeStage
	partition int
	goroutine uint64 // the number of the one it runs on

	mu       sync.Mutex
	ports    []nativePort // by handle; nil once closed
	wrote    bool         // the output port was opened
	results  [][]byte
	failText string
}

// runTask runs one partition and waits for it. The task has a goroutine of its
// own, so that a closure that ends its goroutine (t.FailNow in a test) ends the
// task and not the driver.
func (s *nativeStage) runTask(partition int) (*nativeTask, error) {
	t := &nativeTask{stage: s, partition: partition}
	code := int64(abi.ErrPanic) // stays if run does not return
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.goroutine = goroutine()
		native.task.Store(t)
		code = s.job.e.run(s.kind, s.target, uint32(partition))
	}()
	<-done
	native.task.Store(nil)
	if err := t.end(code); err != nil {
		j := s.job
		return nil, fmt.Errorf("job %d (%s) failed: stage %d (%s), partition %d: %w",
			j.id, place(j.desc.Name, j.desc.CallSite), s.id, s.what, partition, err)
	}
	return t, nil
}

// end releases the ports and says why the task failed, if it did.
func (t *nativeTask) end(code int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := false
	for _, p := range t.ports {
		if p != nil {
			_, reads := p.(nativeReader)
			open = open || !reads
			p.abandon()
		}
	}
	switch {
	case code != 0 && t.failText != "":
		return errors.New(t.failText)
	case code != 0:
		return fmt.Errorf("the task entry answered %d and gave no reason", code)
	case open:
		return errors.New("the task ended without closing its output port")
	}
	return nil
}

// fail keeps the first reason.
func (t *nativeTask) fail(text string) {
	if t.failText == "" {
		t.failText = text
	}
}

// info is the content of task_info. A task has one attempt.
func (t *nativeTask) info() [abi.TaskInfoWords]uint64 {
	s := t.stage
	return [abi.TaskInfoWords]uint64{
		abi.InfoJob:       uint64(s.job.id),
		abi.InfoStage:     uint64(s.id),
		abi.InfoPartition: uint64(t.partition),
		abi.InfoSeed:      mixSeed(s.job.e.seed, uint64(s.job.id), uint64(s.id), uint64(t.partition)),
		abi.InfoMemory:    uint64(debug.SetMemoryLimit(-1)), // -1 only asks
	}
}

// mixSeed makes a seed of several numbers, so that neighbours share nothing: a
// round of SplitMix64 for each.
func mixSeed(parts ...uint64) uint64 {
	var h uint64
	for _, p := range parts {
		h += p + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// nativePort is one end of a stream of batches: a nativeReader or a
// nativeWriter.
type nativePort interface {
	// close completes what was written.
	close() error
	// abandon gives up what is not complete, with all that it left.
	abandon()
}

type nativeReader interface {
	nativePort
	// read fills buf with whole records and answers their length, 0 at the end,
	// or the length of the next batch if buf cannot hold it.
	read(buf []byte) (int, error)
}

type nativeWriter interface {
	nativePort
	// write does not keep b.
	write(b []byte) error
}

func (t *nativeTask) open(kind abi.PortKind, id uint32, partition int) (int64, error) {
	p, err := t.connect(kind, id, partition)
	if err != nil {
		return 0, fmt.Errorf("port_open: %w", err)
	}
	t.ports = append(t.ports, p)
	return int64(len(t.ports) - 1), nil
}

func (t *nativeTask) connect(kind abi.PortKind, id uint32, partition int) (nativePort, error) {
	job := t.stage.job
	switch kind {
	case abi.PortText:
		r := job.e.rdds[id]
		if r == nil || partition < 0 || partition >= len(r.text) {
			return nil, badArgument("RDD %d has no text partition %d", id, partition)
		}
		return newTextPort(r.text[partition]), nil
	case abi.PortShuffleRead:
		s := job.e.shuffles[id]
		if s == nil || !s.complete || partition < 0 || partition >= len(s.parts) {
			return nil, badArgument("shuffle %d has no partition %d to read", id, partition)
		}
		return &shuffleReadPort{batches: s.read(partition)}, nil
	}
	// What is left are outputs, of which a task has one.
	switch {
	case t.wrote:
		return nil, badArgument("the task has opened its output port already")
	case id != t.stage.target:
		return nil, badArgument("%d is not what this task writes", id)
	}
	t.wrote = true
	result := t.stage.kind == abi.TaskResult
	switch {
	case kind == abi.PortShuffleWrite && !result:
		return &shuffleWritePort{shuffle: job.e.shuffles[id]}, nil
	case kind == abi.PortResult && result:
		return &resultPort{task: t}, nil
	case kind == abi.PortSink && result && job.sink != nil:
		return job.sink.create(t.partition)
	}
	return nil, badArgument("the task has no port of kind %d", kind)
}

// port is an open port.
func (t *nativeTask) port(handle int64) (nativePort, error) {
	if handle < 0 || handle >= int64(len(t.ports)) || t.ports[handle] == nil {
		return nil, badArgument("port %d is not open", handle)
	}
	return t.ports[handle], nil
}

func (t *nativeTask) read(handle int64, buf []byte) (int, error) {
	p, err := t.port(handle)
	if err != nil {
		return 0, err
	}
	if r, ok := p.(nativeReader); ok {
		return r.read(buf)
	}
	return 0, badArgument("port %d is an output", handle)
}

func (t *nativeTask) write(handle int64, b []byte) error {
	p, err := t.port(handle)
	if err != nil {
		return err
	}
	if w, ok := p.(nativeWriter); ok {
		return w.write(b)
	}
	return badArgument("port %d is an input", handle)
}

func (t *nativeTask) close(handle int64) error {
	p, err := t.port(handle)
	if err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return err // stays open, and is abandoned with the task
	}
	t.ports[handle] = nil
	return nil
}

// resultPort collects what the driver will pull.
type resultPort struct{ task *nativeTask }

func (p *resultPort) write(b []byte) error {
	if len(b) > 0 { // an empty batch would read as the end
		p.task.results = append(p.task.results, append([]byte(nil), b...))
	}
	return nil
}

func (p *resultPort) close() error { return nil }
func (p *resultPort) abandon()     {}

// fillBatches copies leading batches to buf as long as they fit. It answers
// their length and those that are left; if buf cannot even hold the first, it
// copies nothing and answers the length of that one.
func fillBatches(buf []byte, batches [][]byte) (int, [][]byte) {
	n := 0
	for len(batches) > 0 && len(batches[0]) <= len(buf)-n {
		n += copy(buf[n:], batches[0])
		batches = batches[1:]
	}
	if n == 0 && len(batches) > 0 {
		return len(batches[0]), batches
	}
	return n, batches
}
