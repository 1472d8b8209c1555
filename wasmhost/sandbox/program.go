package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/module"
)

// Program is a compiled module, ready to run. It is safe for concurrent use.
type Program struct {
	host     *Host
	runtime  wazero.Runtime
	code     wazero.CompilationCache // owns the machine code
	compiled wazero.CompiledModule
	meta     meta
}

// Load checks, rewrites and compiles a module, or finds it in the cache. A module
// that is not acceptable is a *ModuleError, one that takes too much to compile a
// *CompileLimitError. wasm is not kept.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Program, error) {
	if h.cache == nil && len(h.opts.Compiler) == 0 {
		prepared, err := module.Prepare(wasm, h.prepare)
		if err != nil {
			return nil, &ModuleError{Reason: err}
		}
		h.opts.Compiling()
		return h.newProgram(ctx, wazero.NewCompilationCache(), prepared.Code, metaOf(prepared))
	}
	return h.loadEntry(ctx, wasm)
}

// runtimeConfig is how everything is compiled. V2 alone: no exceptions, threads
// or tail calls. Without debug information, because a module's DWARF costs
// seconds.
func runtimeConfig(code wazero.CompilationCache) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(false).WithCompilationCache(code)
}

// newProgram compiles code, unless the cache given has it already. It takes the
// cache over.
func (h *Host) newProgram(
	ctx context.Context, code wazero.CompilationCache, wasm []byte, m meta,
) (_ *Program, err error) {
	p := &Program{host: h, code: code, meta: m}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig(code))
	defer func() {
		if err != nil {
			_ = p.close(ctx)
		}
	}()
	if _, err := wasiBuilder(p.runtime, h.prepare.Imports[abi.WASI]).Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("load the program: %w", err)
	}
	if err := h.instantiateQuern(ctx, p.runtime); err != nil {
		return nil, fmt.Errorf("load the program: %w", err)
	}
	if p.compiled, err = compile(ctx, p.runtime, wasm, 1); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.New("load the program: the host is closed")
	}
	h.programs[p] = struct{}{}
	return p, nil
}

// Close gives the program's machine code back. Nothing of it must be running, and
// its slots must be closed.
func (p *Program) Close(ctx context.Context) error {
	p.host.mu.Lock()
	_, open := p.host.programs[p]
	delete(p.host.programs, p)
	p.host.mu.Unlock()
	if !open {
		return nil
	}
	return p.close(ctx)
}

func (p *Program) close(ctx context.Context) error {
	return errors.Join(p.runtime.Close(ctx), p.code.Close(ctx))
}
