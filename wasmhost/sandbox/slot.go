package sandbox

import (
	"context"
	"errors"
	"io"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/linearmem"
)

// Slot runs tasks, one at a time. It keeps at most one instance, which holds the
// image that it ran last.
type Slot struct {
	prog     *Program
	instance *Instance
	image    *image.Image
	stack    [3]uint64
}

// NewSlot makes an empty slot. Close it before the program.
func (p *Program) NewSlot() *Slot { return &Slot{prog: p} }

// TaskConfig is what a task gets.
type TaskConfig struct {
	// Image is what the task is a clone of. The slot takes references of its own.
	Image *image.Image
	// Args are the parameters of the task's entry.
	Args [3]uint32
	// MemoryLimit bounds its linear memory in bytes, the image included; 0: 4 GiB.
	MemoryLimit int64
	// Grow is asked before the memory grows by delta > 0 bytes, and refuses with
	// an error. What it granted is given back when Run returns: Usage.Grown.
	Grow func(delta int64) error
	// Stdout and Stderr may be nil.
	Stdout, Stderr io.Writer
	// Seed determines all that the task gets from random_get.
	Seed [32]byte
	// Env is what host functions see as Call.Env.
	Env any
}

// Usage is what a run used.
type Usage struct {
	PeakMemory int64 // the linear memory's largest length in bytes, the image included
	Grown      int64 // bytes by which the linear memory grew, all given back
	Stack      int64 // bytes of the call stack, outside the linear memory
	Safepoints int64
	// Refused is the first growth that was refused, or nil. The run may have
	// ended well nevertheless.
	Refused *linearmem.Refusal
}

// Run runs one task and answers what its entry answered. An error is one of the
// types in errors.go, or a fault of the host.
func (s *Slot) Run(ctx context.Context, cfg TaskConfig) (ret int64, usage Usage, err error) {
	if err := ctx.Err(); err != nil {
		return 0, usage, &KilledError{Cause: context.Cause(ctx)}
	}
	if err := s.turnTo(ctx, cfg.Image); err != nil {
		return 0, usage, err
	}
	in := s.instance
	in.sys.begin(nil, cfg.Stdout, cfg.Stderr, cfg.Seed, cfg.Image)
	before := in.mem.Len()
	if err := in.begin(ctx, cfg.Env, linearmem.Limit{Bytes: cfg.MemoryLimit, Grow: cfg.Grow}); err != nil {
		in.end()
		return 0, usage, err
	}
	s.stack = [3]uint64{uint64(cfg.Args[0]), uint64(cfg.Args[1]), uint64(cfg.Args[2])}
	err = in.entry.CallWithStack(&in.run, s.stack[:])
	usage = Usage{
		PeakMemory: in.mem.Len(),
		Grown:      in.mem.Len() - before,
		Stack:      in.entry.stackLen(),
		Safepoints: in.safepoints,
		Refused:    in.mem.Refused(),
	}
	if err != nil {
		err = in.failure(err)
		s.discard()
		return 0, usage, err
	}
	in.end()
	if err := s.reset(); err != nil {
		s.discard()
		return 0, usage, err
	}
	return int64(s.stack[0]), usage, nil
}

// turnTo makes the slot's instance a clone of img that has not run yet.
func (s *Slot) turnTo(ctx context.Context, img *image.Image) (err error) {
	if img == nil {
		return errors.New("run a task: no image")
	}
	if s.instance != nil && s.image == img {
		return nil
	}
	if s.instance == nil {
		if s.instance, err = s.prog.newInstance(ctx, nil, nil); err != nil {
			return err
		}
		if s.instance.entry, err = newEntry(s.instance.mod, abi.TaskExport); err != nil {
			s.discard()
			return err
		}
	}
	img.Retain()
	if err := s.instance.load(img); err != nil {
		img.Release()
		s.discard()
		return err
	}
	if s.image != nil {
		s.image.Release()
	}
	s.image = img
	return nil
}

// reset throws away what the task did.
func (s *Slot) reset() (err error) {
	in := s.instance
	if in.entry.stackLen() > keepStack {
		if in.entry, err = newEntry(in.mod, abi.TaskExport); err != nil {
			return err
		}
	}
	if err := in.mem.Reset(in.mod.Memory()); err != nil {
		return err
	}
	return in.setGlobals(s.image)
}

func (s *Slot) discard() {
	if s.instance != nil {
		s.instance.close()
		s.instance = nil
	}
	if s.image != nil {
		s.image.Release()
		s.image = nil
	}
}

// Close gives back what the slot holds. It can be used again.
func (s *Slot) Close() { s.discard() }
