package executor

import (
	"bytes"
	"fmt"
	"io"

	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/shuffle"
	"github.com/quern-project/quern/engine/sink"
	"github.com/quern-project/quern/engine/source"
	"github.com/quern-project/quern/internal/units"
	"github.com/quern-project/quern/sdk/abi"
)

// port is one end of a stream of batches between a task and the host. A port
// reads or writes; the other half answers errDirection.
type port interface {
	read(buf []byte) (int, error)
	write(b []byte) error
	// close completes the port: a writer's output counts only after it.
	close() error
	// abort gives up what close has not completed, and everything that it left.
	abort()
}

var errDirection = fmt.Errorf("%w: the port goes in the other direction", hostcall.ErrBadArgument)

// readOnly and writeOnly are the halves that a port does not have.
type (
	readOnly  struct{}
	writeOnly struct{}
)

func (readOnly) write([]byte) error        { return errDirection }
func (writeOnly) read([]byte) (int, error) { return 0, errDirection }

// textPort reads one partition of a text RDD.
type textPort struct {
	readOnly
	task   *task
	reader *source.Reader
}

func (p *textPort) read(buf []byte) (int, error) { return p.reader.Next(buf) }

func (p *textPort) close() error {
	p.task.metrics.InputBytes += p.reader.Bytes()
	p.task.metrics.InputRecords += p.reader.Records()
	return p.reader.Close()
}

func (p *textPort) abort() { p.reader.Close() }

// shuffleReadPort reads one partition of a shuffle.
type shuffleReadPort struct {
	readOnly
	task   *task
	reader *shuffle.Reader
}

func (p *shuffleReadPort) read(buf []byte) (int, error) { return p.reader.Next(buf) }

func (p *shuffleReadPort) close() error {
	m := p.reader.Metrics()
	p.task.metrics.ShuffleRead += m.Bytes
	p.task.metrics.ShuffleReadRecs += m.Records
	return p.reader.Close()
}

func (p *shuffleReadPort) abort() { p.reader.Close() }

// shuffleWritePort partitions and sorts a map task's output.
type shuffleWritePort struct {
	writeOnly
	task   *task
	writer *shuffle.Writer
}

func (p *shuffleWritePort) write(b []byte) error { return p.writer.Write(b) }

func (p *shuffleWritePort) close() error {
	out, err := p.writer.Commit()
	if err != nil {
		return err
	}
	out.Executor = p.task.executor.cfg.ID
	p.task.mapOutput = &out
	m := p.writer.Metrics()
	p.task.metrics.ShuffleWritten += out.Bytes
	p.task.metrics.ShuffleRecords += out.Records
	p.task.metrics.MemorySpilled += m.MemorySpilled
	p.task.metrics.DiskSpilled += m.DiskSpilled
	return nil
}

func (p *shuffleWritePort) abort() { p.writer.Abort() }

// resultPort collects what goes to the driver, a batch a write. The bytes are
// charged to the task until they are handed over.
type resultPort struct {
	writeOnly
	task *task
	size int64
}

func (p *resultPort) write(b []byte) error {
	n := int64(len(b))
	if limit := p.task.executor.cfg.MaxResult; limit > 0 && p.size+n > limit {
		return &ResultTooLargeError{Size: p.size + n, Limit: limit}
	}
	if err := p.task.memory.Acquire(n); err != nil {
		return err
	}
	p.size += n
	p.task.result = append(p.task.result, bytes.Clone(b))
	return nil
}

func (p *resultPort) close() error { p.task.metrics.ResultBytes += p.size; return nil }
func (p *resultPort) abort()       {}

// ResultTooLargeError is a task's result that the driver would refuse.
type ResultTooLargeError struct{ Size, Limit int64 }

func (e *ResultTooLargeError) Error() string {
	return fmt.Sprintf("the result of one task is %s or more, and all results of a job together may have %s: "+
		"collect less, save it with SaveAsTextFile, or raise quern.driver.maxResultSize", units.Bytes(e.Size), units.Bytes(e.Limit))
}

// sinkPort writes the task's attempt file.
type sinkPort struct {
	writeOnly
	task   *task
	writer *sink.Writer
}

func (p *sinkPort) write(b []byte) error {
	p.task.metrics.OutputBytes += int64(len(b))
	_, err := p.writer.Write(b)
	return err
}

func (p *sinkPort) close() error {
	out, err := p.writer.Close()
	if err != nil {
		return err
	}
	p.task.output = &out
	return nil
}

func (p *sinkPort) abort() { p.writer.Abort() }

// OpenPort implements hostcall.Task.
func (t *task) OpenPort(kind abi.PortKind, id uint32, partition int) (uint32, error) {
	p, err := t.newPort(kind, id, partition)
	if err != nil {
		return 0, t.note(err)
	}
	t.ports = append(t.ports, p)
	return uint32(len(t.ports) - 1), nil
}

func (t *task) newPort(kind abi.PortKind, id uint32, partition int) (port, error) {
	switch kind {
	case abi.PortText:
		for _, in := range t.desc.Text {
			if in.RDD == msg.RDDID(id) && in.Partition == partition {
				return &textPort{task: t, reader: source.Open(t.ctx, t.executor.cfg.Files, t.memory, in.Pieces)}, nil
			}
		}
		return nil, fmt.Errorf("%w: partition %d of text RDD %d is not an input of this task", hostcall.ErrBadArgument, partition, id)
	case abi.PortShuffleRead:
		for _, d := range t.stage.Reads {
			if d.ID == id {
				return t.openShuffleRead(d, partition)
			}
		}
		return nil, fmt.Errorf("%w: shuffle %d is not an input of this task", hostcall.ErrBadArgument, id)
	}
	// What is left are outputs, of which a task has at most one.
	switch {
	case t.wrote:
		return nil, fmt.Errorf("%w: the task has opened its output port already", hostcall.ErrBadArgument)
	case id != t.stage.Target:
		return nil, fmt.Errorf("%w: %d is not what this task writes", hostcall.ErrBadArgument, id)
	}
	var p port
	switch {
	case kind == abi.PortResult && t.stage.Kind == abi.TaskResult:
		p = &resultPort{task: t}
	case kind == abi.PortShuffleWrite && t.stage.Kind == abi.TaskShuffle && t.stage.Shuffle != nil:
		w, err := shuffle.NewWriter(t.shuffleConfig(), *t.stage.Shuffle, t.desc.Partition, t.desc.ID)
		if err != nil {
			return nil, err
		}
		p = &shuffleWritePort{task: t, writer: w}
	case kind == abi.PortSink && t.stage.Sink != nil:
		w, err := sink.NewWriter(t.executor.cfg.Files, t.memory, *t.stage.Sink, t.desc.Partition, t.desc.ID)
		if err != nil {
			return nil, err
		}
		p = &sinkPort{task: t, writer: w}
	default:
		return nil, fmt.Errorf("%w: this task has no port of kind %d", hostcall.ErrBadArgument, kind)
	}
	t.wrote = true
	if t.fault.when != never {
		p = &faulty{port: p, fault: t.fault}
	}
	return p, nil
}

func (t *task) openShuffleRead(d abi.ShuffleDesc, partition int) (port, error) {
	if partition < 0 || partition >= d.Partitions {
		return nil, fmt.Errorf("%w: shuffle %d has %d partitions, none is %d", hostcall.ErrBadArgument, d.ID, d.Partitions, partition)
	}
	reply, err := t.executor.cfg.Driver.MapOutputs(t.ctx, msg.MapOutputsRequest{Shuffle: msg.ShuffleID(d.ID)})
	if err != nil {
		return nil, &shuffle.FetchError{
			FetchLost: msg.FetchLost{Shuffle: msg.ShuffleID(d.ID), Map: -1}, // not one, but not all are there
			Reduce:    partition,
			Block:     -1,
			Cause:     err,
		}
	}
	r, err := shuffle.NewReader(t.shuffleConfig(), d, partition, reply.Outputs)
	if err != nil {
		return nil, err
	}
	return &shuffleReadPort{task: t, reader: r}, nil
}

// port answers an open port.
func (t *task) port(n uint32) (port, error) {
	if int(n) >= len(t.ports) || t.ports[n] == nil {
		return nil, fmt.Errorf("%w: port %d is not open", hostcall.ErrBadArgument, n)
	}
	return t.ports[n], nil
}

// ReadPort implements hostcall.Task.
func (t *task) ReadPort(n uint32, buf []byte) (int, error) {
	p, err := t.port(n)
	if err != nil {
		return 0, err
	}
	got, err := p.read(buf)
	if err != nil && err != io.EOF { // a failure may wrap it
		return 0, t.note(err)
	}
	return got, err
}

// WritePort implements hostcall.Task.
func (t *task) WritePort(n uint32, b []byte) error {
	p, err := t.port(n)
	if err != nil {
		return err
	}
	return t.note(p.write(b))
}

// ClosePort implements hostcall.Task.
func (t *task) ClosePort(n uint32) error {
	p, err := t.port(n)
	if err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return t.note(err) // the port stays open, so that it is aborted
	}
	t.ports[n] = nil
	return nil
}
