package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/internal/units"
)

func buildCommand() command {
	return command{
		name:  "build",
		args:  "[-o FILE] DIR",
		files: true,
		short: "compile a folder with a Go main package to a job module",
		long: `Compile the Go main package in DIR to a WebAssembly module that 'quern run'
takes. It needs the go command. What the compiler says goes to standard error.`,
		setup: func(flags *pflag.FlagSet) action {
			output := flags.StringP("output", "o", "", "write the module to `FILE` (default DIR's name with .wasm, here)")
			return func(ctx context.Context, c *console, args []string) error {
				if len(args) != 1 {
					return usagef("wants one folder, has %d arguments", len(args))
				}
				return build(ctx, c, args[0], *output)
			}
		},
	}
}

func build(ctx context.Context, c *console, dir, output string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if output == "" {
		output = filepath.Base(abs) + ".wasm"
	}
	if info, err := os.Stat(output); err == nil && info.IsDir() {
		return usagef("-o %s is a folder: give the name of a file", output)
	}
	target, err := filepath.Abs(output)
	if err != nil {
		return err
	}
	if err := goBuild(ctx, abs, dir, target, c.err); err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "%s: %s\n", output, units.Bytes(info.Size()))
	return nil
}
