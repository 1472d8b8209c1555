// Package driver runs an application: it starts the job's main function in a
// sandbox, answers its host calls, and schedules its jobs on executors.
//
// Three parties work together. The guest's goroutine is in a [session], which
// defines RDDs and waits for results. One goroutine, the [loop], owns the
// lineage and the two schedulers, which are pure state machines, and carries
// out what they say. Executors run tasks; in local mode there is one, in this
// process, behind a link that could as well be a network.
package driver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/quern-project/quern/engine/conf"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// Options say what to run and with what.
type Options struct {
	Wasm  []byte        // the module
	Args  []string      // of the job, with its name first
	Conf  *conf.Conf    // without what the job sets
	Files *files.Grants // what the job may read and write

	// Stdin may be nil, Stdout and Stderr are the driver's own. What tasks print
	// goes to Log.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Log            *slog.Logger
	Listeners      []event.Listener

	// Compiling is called, unless it is nil, before the module is compiled, if it
	// has to be, and Running when its main function is about to run.
	Compiling, Running func()

	// Compiler is the command line of the child process in which modules are
	// compiled, see sandbox.Options.
	Compiler []string
}

// LoadError says that the module cannot be run: it is no job, or not a module.
type LoadError struct{ Cause error }

func (e *LoadError) Error() string { return e.Cause.Error() }
func (e *LoadError) Unwrap() error { return e.Cause }

// Run runs a job to its end and answers the exit code of its main function. An
// error is why the engine ended it, and the code is then of no meaning: a
// *LoadError before anything ran, else the fault of the driver or, if ctx was
// done, its cause. A job of which an action failed and that then exits is no
// error here: the driver's code has been told.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	cacheDir := conf.CacheDir.Get(o.Conf)
	if cacheDir != "" {
		cacheDir = filepath.Join(cacheDir, "modules")
	}
	compiled := false
	store, err := image.NewStore(image.Options{Limit: int64(conf.DriverImageMemory.Get(o.Conf))})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }() // after the host
	host, err := sandbox.New(ctx, sandbox.Options{
		Functions:     hostcall.Functions(),
		Interval:      int32(conf.SafepointInterval.Get(o.Conf)),
		StackLimit:    int64(conf.TaskStackSize.Get(o.Conf)),
		CacheDir:      cacheDir,
		Compiler:      o.Compiler,
		CompileCPU:    conf.CompileCPU.Get(o.Conf),
		CompileMemory: int64(conf.CompileMemory.Get(o.Conf)),
		Images:        store,
		Warn:          func(text string) { o.Log.Warn(text) },
		Compiling: func() {
			compiled = true
			if o.Compiling != nil {
				o.Compiling()
			}
		},
	})
	if err != nil {
		return 0, err
	}
	// The context's end must not keep us from giving back what we hold.
	defer func() { err = errors.Join(err, host.Close(context.WithoutCancel(ctx))) }()

	start := time.Now()
	program, err := host.Load(ctx, o.Wasm)
	if err != nil {
		return 0, loadError(err)
	}
	o.Log.Debug("module ready", "took", time.Since(start), "cached", !compiled)
	if o.Running != nil {
		o.Running()
	}
	s := newSession(o, program)
	exitCode, err = program.Start(ctx, sandbox.DriverConfig{
		Args:        o.Args,
		Stdin:       o.Stdin,
		Stdout:      o.Stdout,
		Stderr:      o.Stderr,
		MemoryLimit: int64(conf.DriverMemory.Get(o.Conf)),
		Seed:        driverSeed(conf.Seed.Get(o.Conf)),
		Env:         &hostcall.Env{Driver: s, Log: o.Log},
	})
	err = errors.Join(driverError(err), s.close())
	return exitCode, err
}
