package sandbox

import (
	"context"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/quern-project/quern/sdk/abi"
)

// Function is a host function of module "quern".
type Function struct {
	Name            string
	Params, Results []api.ValueType
	// Call finds the parameters in stack and leaves the results there, from index
	// 0 on. The upper half of an i32 parameter is undefined: use uint32(stack[i]).
	// c and stack are valid until it returns. It is called on the goroutine
	// that runs the guest; when it can block, it must return soon after
	// c.Context() is done. A panic ends the run with a HostError.
	Call func(c *Call, stack []uint64)
}

// Call is what a host function sees of the run that called it.
type Call struct {
	// Env is that of DriverConfig or TaskConfig.
	Env any
	// Instance is the guest that called.
	Instance *Instance
}

// Context is that of the run.
func (c *Call) Context() context.Context { return c.Instance.run.Context }

// Memory is the guest's whole memory. It is valid until the host function
// returns.
func (c *Call) Memory() []byte { return c.Instance.mem.Bytes() }

// Bytes is a part of the guest's memory, or false if it is not inside it.
func (c *Call) Bytes(ptr, length uint32) ([]byte, bool) {
	m := c.Memory()
	if end := uint64(ptr) + uint64(length); end <= uint64(len(m)) {
		return m[ptr:end:end], true
	}
	return nil, false
}

// Fail ends the run: Start or Run answers err, which must not be nil, as it is.
// It does not return.
func (c *Call) Fail(err error) { panic(&stop{err}) }

// stop is what host code panics with to end a run; err is the run's error.
type stop struct{ err error }

func (s *stop) Error() string { return s.err.Error() }

// runContext is the context that the guest is called with. wazero hands it on to
// the host functions, which so find their instance without a search.
type runContext struct {
	context.Context
	instance *Instance
}

// instantiateQuern gives the guests of r the module "quern".
func (h *Host) instantiateQuern(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(abi.Module)
	b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, _ []uint64) {
		ctx.(*runContext).instance.safepoint()
	}), nil, nil).Export(abi.YieldImport)
	for _, f := range h.opts.Functions {
		b.NewFunctionBuilder().WithGoFunction(adapt(f), f.Params, f.Results).Export(f.Name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func adapt(f Function) api.GoFunc {
	return func(ctx context.Context, stack []uint64) {
		in := ctx.(*runContext).instance
		defer hostPanic(f.Name)
		f.Call(&in.call, stack)
		in.checkKilled()
	}
}

// hostPanic turns a panic in the named host function into the end of the run.
func hostPanic(name string) {
	switch r := recover().(type) {
	case nil:
	case *stop:
		panic(r)
	default:
		panic(&stop{&HostError{Function: name, Value: r, Stack: string(debug.Stack())}})
	}
}
