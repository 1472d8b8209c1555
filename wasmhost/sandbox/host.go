// Package sandbox runs guests: programs compiled to WebAssembly that nobody has
// to trust. It knows nothing of jobs and tasks beyond two entries of the ABI;
// what guests can do beyond computing is decided by the functions its user
// registers.
//
// A [Host] holds what is common: the functions, the limits, the cache of
// compiled programs. [Host.Load] checks, rewrites and compiles a module, in a
// child process with limits, and answers a [Program]. A program runs in two
// ways:
//
//   - [Program.Start] runs its main function to the end, once, as the driver.
//     While the driver is inside a host function, [Instance.Capture] makes an
//     image of it.
//   - A [Slot] runs one task after the other ([Slot.Run]), each in a clone of an
//     image: the same memory, the same globals, as they stood. What a task
//     writes is gone when it ends. A slot keeps its instance from task to task,
//     which makes a task cost microseconds.
//
// Every run is bounded: its memory by a limit and a hook, its call stack, its
// time by the context, which is looked at in safepoints that were compiled into
// the guest's loops. A run that fails does so with one of the types in
// errors.go and harms nobody else; its instance is thrown away.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/module"
)

// Options configure a host. The zero value of each field is a usable default.
type Options struct {
	// Functions are the host functions of module "quern". The safepoint's is
	// added by the host.
	Functions []Function
	// Exports are the functions, with their types, that a module must export to
	// be accepted, besides its memory. nil asks for the driver's and the task's
	// entries of the ABI.
	Exports map[string]module.Signature
	// Images keeps what is captured. Its images are mapped by the slots if it can
	// be mapped, and copied otherwise. nil: the host makes one of its own.
	Images *image.Store
	// Interval is the number of rounds between safepoints. 0: DefaultInterval.
	// Negative: no safepoints, for measurements; a guest cannot be killed then.
	Interval int32
	// MaxPages is the largest memory of a guest, in pages of 64 KiB. One page
	// less can be used. 0: 65536, which is 4 GiB.
	MaxPages uint32
	// StackLimit is the largest call stack of a guest in bytes, outside its linear
	// memory. It is looked at in safepoints, so a guest can exceed it for a
	// moment. At most 50 MB, which is wazero's own limit. 0: DefaultStackLimit.
	StackLimit int64
	// Limits bound the modules that are accepted.
	Limits module.Limits

	// CacheDir keeps compiled programs. It is created with mode 0700 and must
	// belong to this user alone, because what is in it is executed. "": none.
	CacheDir string
	// CacheSize is the number of bytes above which the oldest programs are
	// removed from CacheDir. 0: DefaultCacheSize.
	CacheSize int64
	// Compiler is the command line of the child process that compiles, which must
	// call CompileChild. nil: modules are compiled in this process, where nothing
	// bounds the time and the memory that takes.
	Compiler []string
	// CompileCPU bounds the child's processor time, with a resolution of a second.
	// 0: DefaultCompileCPU.
	CompileCPU time.Duration
	// CompileMemory bounds the child's memory in bytes. 0: DefaultCompileMemory.
	CompileMemory int64
	// Compiling is called when a module is not in the cache and is about to be
	// compiled. nil: nobody is told.
	Compiling func()
	// Warn is told of what went wrong without consequences, such as a damaged
	// cache entry. nil: nobody is.
	Warn func(text string)
}

// Defaults of Options.
const (
	DefaultInterval      = 1 << 16
	DefaultStackLimit    = 16 << 20
	DefaultCacheSize     = 1 << 30
	DefaultCompileCPU    = 30 * time.Second
	DefaultCompileMemory = 2 << 30
)

func (o Options) withDefaults() Options {
	if o.Exports == nil {
		o.Exports = map[string]module.Signature{
			abi.StartExport: {},
			abi.TaskExport: {
				Params:  []module.ValueType{module.I32, module.I32, module.I32},
				Results: []module.ValueType{module.I64},
			},
		}
	}
	o.Interval = orDefault(o.Interval, DefaultInterval)
	o.MaxPages = orDefault(o.MaxPages, 1<<16)
	o.StackLimit = min(orDefault(o.StackLimit, DefaultStackLimit), maxStack)
	o.CacheSize = orDefault(o.CacheSize, DefaultCacheSize)
	o.CompileCPU = orDefault(o.CompileCPU, DefaultCompileCPU)
	o.CompileMemory = orDefault(o.CompileMemory, DefaultCompileMemory)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Compiling == nil {
		o.Compiling = func() {}
	}
	return o
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Host loads programs. It is safe for concurrent use.
type Host struct {
	opts     Options
	ownStore bool
	started  time.Time // the zero of the drivers' monotonic clocks
	prepare  module.Options
	cache    *cache // nil: none

	mu       sync.Mutex
	programs map[*Program]struct{}
	closed   bool
}

// New makes a host.
func New(ctx context.Context, o Options) (*Host, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("sandboxes need a processor of type amd64 or arm64, this is %s", runtime.GOARCH)
	}
	h := &Host{opts: o.withDefaults(), started: time.Now(), programs: make(map[*Program]struct{})}
	if err := h.checkFunctions(); err != nil {
		return nil, err
	}
	imports, err := h.imports(ctx)
	if err != nil {
		return nil, err
	}
	h.prepare = module.Options{
		Imports:  imports,
		Exports:  h.opts.Exports,
		Yield:    module.Import{Module: abi.Module, Name: abi.YieldImport},
		Interval: max(h.opts.Interval, 0),
		MaxPages: h.opts.MaxPages,
		Limits:   h.opts.Limits,
	}
	if h.opts.CacheDir != "" {
		if h.cache, err = openCache(h.opts.CacheDir, h.opts.CacheSize); err != nil {
			return nil, err
		}
	}
	if h.opts.Images == nil {
		if h.opts.Images, err = image.NewStore(image.Options{}); err != nil {
			return nil, err
		}
		h.ownStore = true
	}
	return h, nil
}

// Images is the store that Capture puts images into.
func (h *Host) Images() *image.Store { return h.opts.Images }

// Close closes all programs. Nothing of the host must be running, and all slots
// must be closed.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	programs := h.programs
	h.programs = nil
	h.mu.Unlock()
	var errs error
	for p := range programs {
		errs = errors.Join(errs, p.close(ctx))
	}
	if h.ownStore {
		errs = errors.Join(errs, h.opts.Images.Close())
	}
	return errs
}

func (h *Host) checkFunctions() error {
	seen := map[string]bool{abi.YieldImport: true}
	for _, f := range h.opts.Functions {
		if f.Name == "" || f.Call == nil || seen[f.Name] {
			return fmt.Errorf("register host function %q: the name is empty or taken, or there is no function", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// imports are the functions that a module may import.
func (h *Host) imports(ctx context.Context) (map[string]map[string]module.Signature, error) {
	own := map[string]module.Signature{abi.YieldImport: {}}
	for _, f := range h.opts.Functions {
		own[f.Name] = signature(f.Params, f.Results)
	}
	wasi, err := wasiFunctions(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]map[string]module.Signature{abi.Module: own, abi.WASI: wasi}, nil
}

func signature(params, results []api.ValueType) module.Signature {
	var s module.Signature
	for _, t := range params {
		s.Params = append(s.Params, module.ValueType(t))
	}
	for _, t := range results {
		s.Results = append(s.Results, module.ValueType(t))
	}
	return s
}
