// Command compiler is the child process that compiles modules for the sandbox's
// tests. It is a program of its own because under the race detector, which the
// tests themselves run with, compiling takes ten times as long.
package main

import (
	"os"

	"github.com/quern-project/quern/wasmhost/sandbox"
)

func main() { os.Exit(sandbox.CompileChild(os.Stdin, os.Stdout)) }
