package sandbox

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// compileChildArg makes the test binary the compiling child process.
const compileChildArg = "compile-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == compileChildArg {
		os.Exit(CompileChild(os.Stdin, os.Stdout))
	}
	dir, err := os.MkdirTemp("", "quern-sandbox")
	if err != nil {
		panic(err)
	}
	sharedCache = dir
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// sharedCache keeps compiled guests for all tests of one run.
var sharedCache string

// compiler is the Options.Compiler of the tests.
func compiler() []string { return []string{os.Args[0], compileChildArg} }
