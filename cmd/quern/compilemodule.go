package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/wasmhost/sandbox"
)

// compileModule is the subcommand that quern runs itself with, in a child
// process with limits, to compile a module.
const compileModule = "compile-module"

func compileModuleCommand() command {
	return command{
		name:   compileModule,
		short:  "compile a module: quern's own child process, not for users",
		hidden: true,
		setup: func(*pflag.FlagSet) action {
			return func(_ context.Context, c *console, args []string) error {
				if len(args) > 0 {
					return usagef("takes no arguments, has %d", len(args))
				}
				if code := sandbox.CompileChild(c.in, c.out); code != 0 {
					return &exitError{code: code}
				}
				return nil
			}
		},
	}
}

// compilerCommand is the command line of the compiling child process.
func compilerCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding quern's own binary, which compiles modules in a process of its own: %w", err)
	}
	return []string{self, compileModule}, nil
}
