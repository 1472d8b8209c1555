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
	job       *nativeJob
	stage     *nativeStage
	partition int

	mu       sync.Mutex
	ports    []nativePort // by handle; nil once closed
	wrote    bool         // the output port was opened
	results  [][]byte
	failText string
	portErr  error // what went wrong first at a port; explains what the task did then
}

// runTask runs one partition and waits for it. The task has a goroutine of its
// own, so that a closure that ends its goroutine (t.FailNow in a test) ends the
// task and not the driver.
func (j *nativeJob) runTask(s *nativeStage, partition int) (*nativeTask, error) {
	t := &nativeTask{job: j, stage: s, partition: partition}
	code := int64(abi.ErrPanic) // stays if run does not return
	done := make(chan struct{})
	native.task.Store(t)
	go func() {
		defer close(done)
		code = j.e.run(s.kind, s.target, uint32(partition))
	}()
	<-done
	native.task.Store(nil)
	if err := t.end(code); err != nil {
		return nil, fmt.Errorf("%s failed: stage %d%s partition %d failed: %v", j, s.id, s.where, partition, err)
	}
	return t, nil
}

// end releases the ports and says why the task failed, if it did.
func (t *nativeTask) end(code int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	undelivered := !t.wrote && (t.stage.kind == abi.TaskShuffle || t.job.sink != nil)
	for _, p := range t.ports {
		if p != nil {
			_, writes := p.(nativeWriter)
			undelivered = undelivered || writes
			p.abandon()
		}
	}
	switch {
	case t.portErr != nil:
		return t.portErr
	case t.failText != "":
		return errors.New(t.failText)
	case code != 0:
		return fmt.Errorf("the task entry answered %d and gave no reason", code)
	case undelivered:
		return errors.New("the task ended without opening and closing its output port")
	}
	return nil
}

// fail keeps the first reason.
func (t *nativeTask) fail(text string) {
	if t.failText == "" {
		t.failText = text
	}
}

// note keeps the first error of a port.
func (t *nativeTask) note(err error) error {
	if t.portErr == nil {
		t.portErr = err
	}
	return err
}

// info is the content of task_info. A task has one attempt.
func (t *nativeTask) info() [abi.TaskInfoWords]uint64 {
	return [abi.TaskInfoWords]uint64{
		abi.InfoJob:       uint64(t.job.id),
		abi.InfoStage:     uint64(t.stage.id),
		abi.InfoPartition: uint64(t.partition),
		abi.InfoSeed:      mixSeed(t.stage.seed, uint64(t.partition)),
		abi.InfoMemory:    uint64(debug.SetMemoryLimit(-1)), // -1 only asks
	}
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
		return 0, t.note(err)
	}
	t.ports = append(t.ports, p)
	return int64(len(t.ports) - 1), nil
}

func (t *nativeTask) connect(kind abi.PortKind, id uint32, partition int) (nativePort, error) {
	e, job := t.job.e, t.job
	switch kind {
	case abi.PortText:
		r := e.rdds[id]
		if r == nil || partition < 0 || partition >= len(r.text) {
			return nil, badArgument("RDD %d has no text partition %d", id, partition)
		}
		return newTextPort(r.text[partition]), nil
	case abi.PortShuffleRead:
		s := e.shuffles[id]
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
		return &shuffleWritePort{shuffle: e.shuffles[id]}, nil
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
	r, ok := p.(nativeReader)
	if !ok {
		return 0, badArgument("port %d is an output", handle)
	}
	n, err := r.read(buf)
	return n, t.note(err)
}

func (t *nativeTask) write(handle int64, b []byte) error {
	p, err := t.port(handle)
	if err != nil {
		return err
	}
	w, ok := p.(nativeWriter)
	if !ok {
		return badArgument("port %d is an input", handle)
	}
	return t.note(w.write(b))
}

func (t *nativeTask) close(handle int64) error {
	p, err := t.port(handle)
	if err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return t.note(err) // the port stays open, and is abandoned with the task
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
