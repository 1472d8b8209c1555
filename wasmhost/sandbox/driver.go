package sandbox

import (
	"context"
	"errors"
	"io"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/linearmem"
)

// DriverConfig is what a driver gets.
type DriverConfig struct {
	Args    []string  // with the program's name first
	Environ []string  // "KEY=value"
	Stdin   io.Reader // nil: empty
	Stdout  io.Writer // nil: discarded
	Stderr  io.Writer // nil: discarded
	// MemoryLimit bounds its linear memory in bytes; 0: 4 GiB.
	MemoryLimit int64
	// Seed determines all that it gets from random_get.
	Seed [32]byte
	// Env is what host functions see as Call.Env.
	Env any
}

// Start runs the program's main function to its end and answers its exit code.
// An error says why the engine ended it, or what it died of; exitCode is then
// not 0. A read of Stdin that blocks when ctx is done is left behind.
func (p *Program) Start(ctx context.Context, cfg DriverConfig) (exitCode int, err error) {
	in, err := p.newInstance(ctx, cfg.Args, cfg.Environ)
	if err != nil {
		return 1, err
	}
	defer in.close()
	in.sys.begin(cfg.Stdin, cfg.Stdout, cfg.Stderr, cfg.Seed, nil)
	if err := in.begin(ctx, cfg.Env, linearmem.Limit{Bytes: cfg.MemoryLimit}); err != nil {
		return 1, err
	}
	for _, name := range []string{p.meta.Start, abi.StartExport} {
		if name == "" {
			continue
		}
		if in.entry, err = newEntry(in.mod, name); err != nil {
			return 1, err
		}
		err = in.failure(in.entry.CallWithStack(&in.run, nil))
		var exit *ExitError
		if errors.As(err, &exit) && err == error(exit) {
			return exit.Code, nil
		}
		if err != nil {
			return 1, err
		}
	}
	return 0, nil
}
