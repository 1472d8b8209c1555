// Package hostcall is the host's side of the ABI: it turns the raw host
// functions that a guest imports from "quern" (pointers, lengths, negative
// codes) into calls of two Go interfaces, Driver and Task. It checks every
// pointer and decodes every descriptor, so that what lies behind the interfaces
// sees only well-formed values. docs/abi.md describes the functions.
package hostcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/quern-project/quern/net/wire"
	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/sandbox"
	"github.com/tetratelabs/wazero/api"
)

// Driver is what the driver module may do. It is called on the guest's
// goroutine; a blocking call must end with the error of ctx when that is done.
type Driver interface {
	// OpenContext starts the application with what the job itself has set.
	OpenContext(d abi.ContextDesc) error
	// Conf answers the value of a configuration key, and whether there is one.
	Conf(key string) (string, bool)
	// DefineRDD records an RDD and answers its number of partitions.
	DefineRDD(d abi.RDDDesc) (int, error)
	// RunJob starts an action with the memory of the instance as its image, and
	// answers a handle for NextResult.
	RunJob(driver *sandbox.Instance, d abi.JobDesc) (uint32, error)
	// NextResult fills buf with whole batches in partition order. It answers
	// io.EOF at the end, and an error that only wraps it is a failure; n > len(buf)
	// is the size of the next batch, of which nothing was consumed.
	NextResult(ctx context.Context, job uint32, buf []byte) (n int, err error)
	// CloseJob cancels a job that has not ended and forgets it.
	CloseJob(job uint32) error
}

// Task is what a task may do. It is called on the task's goroutine.
type Task interface {
	// Info answers the words of task_info.
	Info() [abi.TaskInfoWords]uint64
	// OpenPort answers a handle >= 0.
	OpenPort(kind abi.PortKind, id uint32, partition int) (uint32, error)
	// ReadPort fills buf with whole records; conventions as NextResult.
	ReadPort(port uint32, buf []byte) (n int, err error)
	// WritePort consumes a batch; b belongs to the guest and is not retained.
	WritePort(port uint32, b []byte) error
	ClosePort(port uint32) error
	// Fail records why the task is about to fail.
	Fail(code abi.Code, text string)
}

// ErrBadArgument marks an error as the guest's misuse of the ABI.
var ErrBadArgument = errors.New("bad argument")

// Env is the value that a run is given (sandbox's Env): which side of the ABI
// the instance is on. Exactly one of Driver and Task is set.
type Env struct {
	Driver Driver
	Task   Task
	Log    *slog.Logger

	lastError string
}

// fail stores the text for last_error and answers the code.
func (e *Env) fail(err error) int64 {
	code := abi.ErrFailed
	switch {
	case errors.Is(err, ErrBadArgument):
		code = abi.ErrBadArgument
	case errors.Is(err, context.Canceled):
		code = abi.ErrCancelled
	}
	return e.failCode(code, err.Error())
}

func (e *Env) failCode(code abi.Code, text string) int64 {
	e.lastError = text
	return int64(code)
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// side says where a function may be called.
type side uint8

const (
	inDriver side = 1 << iota
	inTask
)

// function describes one host function: its i32 parameters, where it may be
// called, and its body, which answers the i64 result.
type function struct {
	name   string
	params int
	side   side
	body   func(c *sandbox.Call, e *Env, stack []uint64) int64
}

// Functions lists the host functions for sandbox.Options. Every run must be
// given an *Env.
func Functions() []sandbox.Function {
	all := []function{
		{abi.FnContextOpen, 2, inDriver, contextOpen},
		{abi.FnConfGet, 4, inDriver, confGet},
		{abi.FnRDDDefine, 2, inDriver, rddDefine},
		{abi.FnJobRun, 2, inDriver, jobRun},
		{abi.FnJobNext, 3, inDriver, jobNext},
		{abi.FnJobClose, 1, inDriver, jobClose},
		{abi.FnTaskInfo, 2, inTask, taskInfo},
		{abi.FnPortOpen, 3, inTask, portOpen},
		{abi.FnPortRead, 3, inTask, portRead},
		{abi.FnPortWrite, 3, inTask, portWrite},
		{abi.FnPortClose, 1, inTask, portClose},
		{abi.FnTaskFail, 3, inTask, taskFail},
		{abi.FnLastError, 2, inDriver | inTask, lastError},
		{abi.FnLog, 3, inDriver | inTask, logText},
	}
	out := make([]sandbox.Function, len(all))
	for i, f := range all {
		params := make([]api.ValueType, f.params)
		for j := range params {
			params[j] = i32
		}
		out[i] = sandbox.Function{
			Name:    f.name,
			Params:  params,
			Results: []api.ValueType{i64},
			Call:    f.call,
		}
	}
	return out
}

func (f function) call(c *sandbox.Call, stack []uint64) {
	e := c.Env.(*Env)
	var result int64
	switch {
	case e.Driver != nil && f.side&inDriver == 0:
		result = e.failCode(abi.ErrInDriver, f.name+": this call is for tasks, and this is the driver")
	case e.Task != nil && f.side&inTask == 0:
		result = e.failCode(abi.ErrInTask, f.name+": this call is for the driver, and this is a task")
	default:
		result = f.body(c, e, stack)
	}
	stack[0] = uint64(result)
}

// bytes answers the guest's memory at the parameters i (pointer) and i+1
// (length).
func bytes(c *sandbox.Call, stack []uint64, i int) ([]byte, error) {
	ptr, n := uint32(stack[i]), uint32(stack[i+1])
	b, ok := c.Bytes(ptr, n)
	if !ok {
		return nil, fmt.Errorf("%w: %d bytes at %#x are outside of the module's memory", ErrBadArgument, n, ptr)
	}
	return b, nil
}

// read answers a length-convention read: n > len(buf) means come back with a
// larger buffer.
func (e *Env) read(n int, err error) int64 {
	switch err {
	case nil:
		return int64(n)
	case io.EOF: // itself: a failure may wrap it, and must not be taken for the end
		return 0
	}
	return e.fail(err)
}

func copyOut(dst []byte, s string) int64 {
	if len(s) <= len(dst) {
		copy(dst, s)
	}
	return int64(len(s))
}

// decode reads the descriptor at the function's first two parameters.
func decode[T any](c *sandbox.Call, stack []uint64, what string) (d T, err error) {
	if n := uint32(stack[1]); n > abi.MaxDescriptor {
		return d, fmt.Errorf("%w: the %s descriptor has %d bytes, the limit is %d", ErrBadArgument, what, n, abi.MaxDescriptor)
	}
	b, err := bytes(c, stack, 0)
	if err != nil {
		return d, err
	}
	if err := wire.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%w: the %s descriptor does not decode: %v", ErrBadArgument, what, err)
	}
	return d, nil
}

func contextOpen(c *sandbox.Call, e *Env, stack []uint64) int64 {
	d, err := decode[abi.ContextDesc](c, stack, "context")
	if err != nil {
		return e.fail(err)
	}
	if d.Version != abi.Version {
		return e.failCode(abi.ErrVersion, fmt.Sprintf("the job speaks version %d of the ABI (%s), this quern version %d: "+
			"rebuild the job with this quern's SDK", d.Version, d.SDK, abi.Version))
	}
	if err := e.Driver.OpenContext(d); err != nil {
		return e.fail(err)
	}
	return 0
}

func confGet(c *sandbox.Call, e *Env, stack []uint64) int64 {
	key, err := bytes(c, stack, 0)
	if err != nil {
		return e.fail(err)
	}
	buf, err := bytes(c, stack, 2)
	if err != nil {
		return e.fail(err)
	}
	name := text(key)
	value, ok := e.Driver.Conf(name)
	if !ok {
		return e.failCode(abi.ErrNotFound, fmt.Sprintf("configuration key %q is not set", name))
	}
	return copyOut(buf, value)
}

func rddDefine(c *sandbox.Call, e *Env, stack []uint64) int64 {
	d, err := decode[abi.RDDDesc](c, stack, "RDD")
	if err != nil {
		return e.fail(err)
	}
	n, err := e.Driver.DefineRDD(d)
	return e.read(n, err)
}

func jobRun(c *sandbox.Call, e *Env, stack []uint64) int64 {
	d, err := decode[abi.JobDesc](c, stack, "job")
	if err != nil {
		return e.fail(err)
	}
	job, err := e.Driver.RunJob(c.Instance, d)
	if err != nil {
		return e.fail(err)
	}
	return int64(job)
}

func jobNext(c *sandbox.Call, e *Env, stack []uint64) int64 {
	buf, err := bytes(c, stack, 1)
	if err != nil {
		return e.fail(err)
	}
	n, err := e.Driver.NextResult(c.Context(), uint32(stack[0]), buf)
	return e.read(n, err)
}

func jobClose(c *sandbox.Call, e *Env, stack []uint64) int64 {
	if err := e.Driver.CloseJob(uint32(stack[0])); err != nil {
		return e.fail(err)
	}
	return 0
}
