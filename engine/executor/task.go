package executor

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/engine/memory"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/shuffle"
	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// task is one attempt at one partition, from its launch to its last report. It
// implements hostcall.Task.
type task struct {
	executor *Executor
	stage    *msg.Stage
	desc     *msg.Task

	// Guarded by executor.mu until the task is in its slot.
	killed *KilledError
	ctx    context.Context
	cancel context.CancelCauseFunc

	memory  *memory.Task
	image   int64 // bytes of the driver's memory that the task starts with
	printed printed
	last    *crashReport // of a runtime that ended the task, or nil
	ports   []port       // by handle; nil when closed
	wrote   bool         // an output port was opened
	fault   fault

	result    [][]byte
	mapOutput *msg.MapOutput
	output    *msg.SinkOutput
	metrics   msg.TaskMetrics

	hostErr  error // the first failure of a port, which explains what follows
	failCode abi.Code
	failText string
}

// kill asks the task to stop. executor.mu is held.
func (t *task) kill(reason *KilledError) {
	if t.cancel != nil {
		t.cancel(reason)
	} else if t.killed == nil {
		t.killed = reason
	}
}

// run executes the task in a slot's sandbox and answers its final report.
// Whatever happens, the task's memory is back in the pool and what it left
// unfinished is gone.
func (t *task) run(box *sandbox.Slot) (u msg.StatusUpdate) {
	start := time.Now()
	u = msg.StatusUpdate{Executor: t.executor.cfg.ID, Task: t.desc.ID, Stage: t.stage.ID}
	failure := t.execute(box)
	t.metrics.RunNanos = int64(time.Since(start))
	t.cancel(nil)
	u.Metrics = t.metrics
	switch {
	case failure == nil:
		u.State = msg.StateFinished
		u.Result, u.MapOutput, u.Output = t.result, t.mapOutput, t.output
	case failure.Kind == msg.FailKilled:
		u.State, u.Failure = msg.StateKilled, failure
	default:
		u.State, u.Failure = msg.StateFailed, failure
	}
	return u
}

func (t *task) execute(box *sandbox.Slot) (failure *msg.Failure) {
	defer func() {
		if r := recover(); r != nil {
			failure = &msg.Failure{Kind: msg.FailInternal, Message: fmt.Sprintf("panic in the task runner: %v", r), Stack: string(debug.Stack())}
			box.Close() // whatever state it is in
		}
	}()
	if err := context.Cause(t.ctx); err != nil {
		return t.classify(err)
	}
	t.memory = t.executor.pool.NewTask(t.ctx, t.desc.ID, 0)
	defer func() {
		for _, p := range t.ports {
			if p != nil {
				p.abort()
			}
		}
		t.metrics.PeakMemory += t.memory.Peak()
		t.memory.Close()
	}()

	img, err := t.executor.cfg.Driver.Image(t.ctx, t.stage.Image)
	if err != nil {
		return t.classify(err)
	}
	defer img.Release()
	t.image = img.Len()

	t.fault = t.executor.cfg.Faults.draw(t.stage, t.desc)
	if err := t.fault.at(atStart); err != nil {
		return t.classify(err)
	}
	env := &hostcall.Env{Task: t, Log: t.executor.cfg.Log}
	ret, usage, err := box.Run(t.ctx, sandbox.TaskConfig{
		Image:       img,
		Args:        [3]uint32{uint32(t.stage.Kind), t.stage.Target, uint32(t.desc.Partition)},
		MemoryLimit: t.executor.cfg.TaskMemory,
		Grow:        t.memory.Acquire,
		Stdout:      &t.printed,
		Stderr:      &t.printed,
		Seed:        t.sandboxSeed(),
		Env:         env,
	})
	t.metrics.Safepoints = usage.Safepoints
	// What the linear memory grew by was drawn from the task's memory.
	t.metrics.PeakMemory = usage.PeakMemory - usage.Grown + usage.Stack
	own := t.printed.String()
	if err != nil {
		own, t.last = splitCrashReport(own)
	}
	if own != "" && t.executor.cfg.Log != nil {
		logLines(t.executor.cfg.Log, own, t.name())
	}
	switch {
	case err != nil:
		return t.classify(err)
	case t.hostErr != nil:
		return t.classify(t.hostErr)
	case t.failText != "" || ret != 0:
		return t.userFailure(abi.Code(ret))
	}
	return t.complete()
}

// complete checks that the task has delivered what its stage is for.
func (t *task) complete() *msg.Failure {
	missing := ""
	switch {
	case t.stage.Kind == abi.TaskShuffle && t.mapOutput == nil:
		missing = "its shuffle port"
	case t.stage.Sink != nil && t.output == nil:
		missing = "its sink port"
	default:
		return nil
	}
	return &msg.Failure{Kind: msg.FailUser, Message: "the task ended without opening and closing " + missing + " (see docs/abi.md)"}
}

// Info implements hostcall.Task.
func (t *task) Info() (w [abi.TaskInfoWords]uint64) {
	w[abi.InfoJob] = uint64(t.stage.Job)
	w[abi.InfoStage] = uint64(t.stage.ID.Stage)
	w[abi.InfoStageAttempt] = uint64(t.stage.ID.Attempt)
	w[abi.InfoPartition] = uint64(t.desc.Partition)
	w[abi.InfoAttempt] = uint64(t.desc.Attempt)
	w[abi.InfoSeed] = t.seed()
	w[abi.InfoMemory] = uint64(min(t.executor.cfg.TaskMemory, t.image+t.executor.cfg.Memory/int64(t.executor.cfg.Cores)))
	return w
}

// seed depends on the stage's seed and the partition alone, so that every
// attempt draws the same numbers.
func (t *task) seed() uint64 {
	return mix(t.stage.Seed + 0x9e3779b97f4a7c15*uint64(t.desc.Partition+1))
}

// sandboxSeed is what the sandbox's own source of randomness starts from.
func (t *task) sandboxSeed() (s [32]byte) {
	x := t.seed()
	for i := 0; i < len(s); i += 8 {
		x = mix(x + 0x9e3779b97f4a7c15)
		binary.LittleEndian.PutUint64(s[i:], x)
	}
	return s
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Fail implements hostcall.Task.
func (t *task) Fail(code abi.Code, text string) {
	if t.failText == "" {
		t.failCode, t.failText = code, text
	}
}

// note remembers the first failure of a port: what the guest makes of it later
// is only a consequence.
func (t *task) note(err error) error {
	if err != nil && t.hostErr == nil {
		t.hostErr = err
	}
	return err
}

func (t *task) shuffleConfig() shuffle.Config {
	return shuffle.Config{
		Dir:         t.executor.cfg.LocalDir,
		Compression: t.executor.cfg.Compression,
		Memory:      t.memory,
	}
}

// name is how messages call the task.
func (t *task) name() string {
	return fmt.Sprintf("partition %d of %s (stage %s, attempt %d)", t.desc.Partition, t.stage.Name, t.stage.ID, t.desc.Attempt+1)
}
