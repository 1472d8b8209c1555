package sandbox

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/linearmem"
)

// Instance is a guest: a driver or a clone of one.
type Instance struct {
	prog    *Program
	mod     api.Module
	mem     *linearmem.LinearMemory
	globals []api.MutableGlobal
	entry   *entry
	sys     system

	run        runContext
	done       <-chan struct{} // of run
	call       Call
	safepoints int64
}

// newInstance makes a guest with the given arguments and environment whose
// memory is as the module's data segments say.
func (p *Program) newInstance(ctx context.Context, args, env []string) (in *Instance, err error) {
	in = &Instance{prog: p}
	in.run.instance = in
	in.call.Instance = in
	in.sys.instance = in
	defer func() {
		// wazero panics when it does not get the memory that a module begins with.
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			in.close()
			in, err = nil, fmt.Errorf("instantiate the program: %w", err)
		}
	}()
	var memErr error
	ictx := experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
		func(minimum, maximum uint64) experimental.LinearMemory {
			if minimum < maximum {
				maximum -= linearmem.PageSize // see linearmem.LinearMemory.Load
			}
			in.mem, memErr = linearmem.New(int64(maximum), !p.host.opts.Images.Mapped())
			if memErr != nil {
				panic(memErr)
			}
			return in.mem
		}))
	in.mod, err = p.runtime.InstantiateModule(ictx, p.compiled, in.sys.config(args, env))
	if err != nil {
		return in, err
	}
	for _, name := range p.meta.Globals {
		g, ok := in.mod.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return in, fmt.Errorf("the compiled module does not export global %q", name)
		}
		in.globals = append(in.globals, g)
	}
	return in, nil
}

// close gives everything back. The guest must not be running.
func (in *Instance) close() {
	if in.mod != nil {
		_ = in.mod.Close(context.Background())
	}
	if in.mem != nil {
		_ = in.mem.Close()
	}
}

// begin prepares the bookkeeping of a run.
func (in *Instance) begin(ctx context.Context, env any, limit linearmem.Limit) error {
	in.run.Context = ctx
	in.done = ctx.Done()
	in.call.Env = env
	in.safepoints = 0
	if limit.Bytes == 0 {
		limit.Bytes = linearmem.MaxPages * linearmem.PageSize
	}
	in.mem.Begin(limit)
	if use := in.mem.Len(); use > limit.Bytes {
		return &MemoryError{Limit: limit.Bytes, Use: use}
	}
	return nil
}

// end forgets what belongs to the run alone, so that an idle slot keeps nothing
// of it alive.
func (in *Instance) end() {
	in.run.Context, in.done, in.call.Env = nil, nil, nil
	in.sys.end()
}

// safepoint is called by the guest every so many rounds.
func (in *Instance) safepoint() {
	in.safepoints++
	in.checkKilled()
	if use := in.entry.stackLen(); use > in.prog.host.opts.StackLimit {
		panic(&stop{&StackError{Limit: in.prog.host.opts.StackLimit, Use: use}})
	}
}

// checkKilled ends the run if its context is done.
func (in *Instance) checkKilled() {
	select {
	case <-in.done:
		in.kill()
	default:
	}
}

func (in *Instance) kill() {
	panic(&stop{&KilledError{Cause: context.Cause(in.run.Context)}})
}

// Capture makes an image of the guest as it stands now. It may only be called
// while the guest is inside a host function. prev is an earlier image of it, or
// nil, and makes the capture cheaper. The caller releases the image.
func (in *Instance) Capture(prev *image.Image) (*image.Image, error) {
	globals := make([]uint64, len(in.globals))
	for i, g := range in.globals {
		globals[i] = g.Get()
	}
	img, err := in.prog.host.opts.Images.Capture(image.State{
		Memory:  in.mem.Bytes(),
		Globals: globals,
		Clock:   in.sys.nanotime(),
	}, prev)
	if err != nil {
		return nil, fmt.Errorf("capture the driver's memory: %w", err)
	}
	return img, nil
}

// load makes the guest a clone of img.
func (in *Instance) load(img *image.Image) error {
	if err := in.mem.Load(img, in.mod.Memory()); err != nil {
		return err
	}
	return in.setGlobals(img)
}

func (in *Instance) setGlobals(img *image.Image) error {
	values := img.Globals()
	if len(values) != len(in.globals) {
		return fmt.Errorf("the image has %d globals and the program %d: it is not an image of this program",
			len(values), len(in.globals))
	}
	for i, g := range in.globals {
		g.Set(values[i])
	}
	return nil
}
