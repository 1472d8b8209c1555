package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/module"
)

// WASI has nothing behind it: no files, no folders, no sockets. A guest has its
// three standard streams, clocks, random numbers and its exit. Part of the
// functions are wazero's, the others in wasi_calls.go.

// wasiBuilder makes the module. functions are those of wasiFunctions.
func wasiBuilder(r wazero.Runtime, functions map[string]module.Signature) wazero.HostModuleBuilder {
	b := r.NewHostModuleBuilder(abi.WASI)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(b)
	for name, t := range functions {
		if call := wasiCallOf(name); call != nil {
			b.NewFunctionBuilder().WithGoFunction(call.goFunction(name), apiTypes(t.Params), apiTypes(t.Results)).Export(name)
		}
	}
	return b
}

// wasiFunctions are the functions of WASI that a module may import: those that
// wazero has.
func wasiFunctions(ctx context.Context) (map[string]module.Signature, error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	compiled, err := wasiBuilder(r, nil).Compile(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the functions of WASI: %w", err)
	}
	functions := make(map[string]module.Signature)
	for name, def := range compiled.ExportedFunctions() {
		functions[name] = signature(def.ParamTypes(), def.ResultTypes())
	}
	return functions, nil
}

func apiTypes(all []module.ValueType) (types []api.ValueType) {
	for _, t := range all {
		types = append(types, api.ValueType(t))
	}
	return types
}

// system is what WASI answers to one instance. Its parts change from run to run.
type system struct {
	instance       *Instance
	stdin          io.Reader
	stdout, stderr io.Writer
	random         *rand.ChaCha8
	clock          int64     // what the monotonic clock showed
	clockAt        time.Time // at this time
}

func (s *system) config(args, environ []string) wazero.ModuleConfig {
	s.random = rand.NewChaCha8([32]byte{})
	s.end()
	c := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs(args...).
		WithWalltime(walltime, sys.ClockResolution(time.Microsecond)).
		WithNanotime(s.nanotime, 1).
		WithOsyield(s.yield)
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		c = c.WithEnv(k, v)
	}
	return c
}

// begin sets up a run. img is what the run is a clone of, nil for a driver.
func (s *system) begin(in io.Reader, out, err io.Writer, seed [32]byte, img *image.Image) {
	s.stdin, s.stdout, s.stderr = in, out, err
	s.random.Seed(seed)
	// The clock of a driver begins with its host. A clone's goes on from where
	// the driver's was, on whatever machine it runs: timers that were set before
	// the capture must fire after it.
	if s.clockAt = s.instance.prog.host.started; img != nil {
		s.clock, s.clockAt = img.Clock(), time.Now()
	}
}

// end forgets the streams of the run.
func (s *system) end() { s.stdin, s.stdout, s.stderr = nil, nil, nil }

func walltime() (sec int64, nsec int32) {
	t := time.Now()
	return t.Unix(), int32(t.Nanosecond())
}

func (s *system) nanotime() int64 { return s.clock + int64(time.Since(s.clockAt)) }

func (s *system) nanosleep(ns int64) {
	if ns <= 0 {
		s.instance.checkKilled()
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.instance.done:
		s.instance.kill()
	}
}

func (s *system) yield() { s.instance.checkKilled() }

// read reads from standard input, in another goroutine, so that a guest that waits
// for input can be killed. The goroutine then stays until the input comes; it does
// not touch the guest's memory.
func (s *system) read(b []byte) (int, error) {
	if s.stdin == nil {
		return 0, io.EOF
	}
	switch in := s.stdin.(type) {
	case *bytes.Reader, *strings.Reader, *bytes.Buffer:
		return in.Read(b) // never waits
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	in, size := s.stdin, len(b)
	go func() {
		buf := make([]byte, size)
		n, err := in.Read(buf)
		done <- result{buf[:n], err}
	}()
	select {
	case res := <-done:
		return copy(b, res.data), res.err
	case <-s.instance.done:
		s.instance.kill()
		panic("unreachable")
	}
}
