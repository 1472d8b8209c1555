package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/quern-project/quern/internal/scratchdir"
)

func TestMain(m *testing.M) {
	dir, err := scratchdir.New(os.TempDir(), "quern-sandbox-")
	if err == nil {
		sharedCache, compilerPath = filepath.Join(dir.Path, "cache"), filepath.Join(dir.Path, "compiler")
		err = build(exec.Command("go", "build", "-o", compilerPath, "./testdata/compiler"))
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else if code = m.Run(); code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if dir != nil {
		dir.Remove()
	}
	os.Exit(code)
}

func build(cmd *exec.Cmd) error {
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build what the tests run: %v: %w\n%s", cmd, err, text)
	}
	return nil
}

// sharedCache keeps compiled guests for all tests of one run.
var sharedCache string

var compilerPath string

// compiler is the Options.Compiler of the tests.
func compiler() []string { return []string{compilerPath} }
