package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	gobuild "go/build"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// goBuild compiles the Go main package in dir, an absolute path, to a module
// at target. shown is dir as the user wrote it. The compiler's own words go to
// stderr as they are.
//
// The name section stays in (no -ldflags=-s): stacks of guests need it, and it
// is 2% of the size. Paths are trimmed, so that the same source gives the same
// module wherever it lies, and with it a hit in the compile cache.
func goBuild(ctx context.Context, dir, shown, target string, stderr io.Writer) error {
	if err := checkMainPackage(dir, shown); err != nil {
		return notAJob(err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return notAJob(fmt.Errorf("building %s needs the go command, and PATH has none: install Go from https://go.dev/dl", shown))
	}
	env, err := goEnvironment(ctx, goCommand, dir, stderr)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, goCommand, "build", "-trimpath", "-buildvcs=false", "-o", target, ".")
	if err := runGo(cmd, dir, env, stderr); err != nil {
		return goFailed(ctx, shown, err)
	}
	return nil
}

// runGo runs cmd in dir with its output on stderr. A cancelled context asks it
// to stop, and after a while insists.
func runGo(cmd *exec.Cmd, dir string, env []string, stderr io.Writer) error {
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, stderr
	if cmd.Stdout == nil {
		cmd.Stdout = stderr
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 3 * time.Second
	return cmd.Run()
}

// goFailed is the error for a go command that has already said why.
func goFailed(ctx context.Context, shown string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return notAJob(fmt.Errorf("%s does not build (see above)", shown))
	}
	return fmt.Errorf("running the go command: %w", err)
}

// checkMainPackage says what is wrong with dir where the go command would
// say nothing (it builds a library to an archive without complaint) or say it
// in its own terms.
func checkMainPackage(dir, shown string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist", shown)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: give the folder of a Go main package", shown)
	}
	target := gobuild.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "wasip1", "wasm", false
	pkg, err := target.ImportDir(dir, 0)
	var none *gobuild.NoGoError
	if errors.As(err, &none) {
		return fmt.Errorf("%s has no Go files that build for GOOS=wasip1 GOARCH=wasm: give the folder of a Go main package", shown)
	}
	if err == nil && pkg.Name != "main" {
		return fmt.Errorf("%s is package %s, and a job is package main with a func main", shown, pkg.Name)
	}
	return nil // other errors are the go command's to explain
}

// goEnvironment returns the environment in which goCommand builds dir for
// WebAssembly. It names a toolchain when the local one will not do.
func goEnvironment(ctx context.Context, goCommand, dir string, stderr io.Writer) ([]string, error) {
	env := append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "PWD="+dir)
	toolchain, err := missingToolchain(ctx, goCommand, dir, env, stderr)
	if err != nil {
		return nil, err
	}
	if toolchain != "" {
		env = append(env, "GOTOOLCHAIN="+toolchain)
	}
	return env, nil
}

// missingToolchain names a toolchain when the local one is older than the module
// in dir asks and would not be switched by itself (GOTOOLCHAIN=local); else "".
func missingToolchain(ctx context.Context, goCommand, dir string, env []string, stderr io.Writer) (string, error) {
	cmd := exec.CommandContext(ctx, goCommand, "env", "-json", "GOVERSION", "GOTOOLCHAIN", "GOMOD", "GOWORK")
	var out strings.Builder
	cmd.Stdout = &out
	if err := runGo(cmd, dir, env, stderr); err != nil {
		return "", goFailed(ctx, dir, err)
	}
	var local struct{ GOVERSION, GOTOOLCHAIN, GOMOD, GOWORK string }
	if err := json.Unmarshal([]byte(out.String()), &local); err != nil {
		return "", fmt.Errorf("reading 'go env': %w", err)
	}
	if local.GOTOOLCHAIN != "local" {
		return "", nil // the go command switches, or the user named a version
	}
	asked := goRequirement{}
	for _, file := range []string{local.GOMOD, local.GOWORK} {
		if file == "" || file == os.DevNull || file == "off" {
			continue
		}
		if err := asked.read(file); err != nil {
			return "", err
		}
	}
	return asked.toolchainFor(local.GOVERSION, runtime.Version()), nil
}

// goRequirement is what go.mod and go.work ask of the toolchain: versions such
// as "go1.27.0", or "".
type goRequirement struct {
	language  string // the go line
	toolchain string // the toolchain line
}

// read raises the requirement to that of a go.mod or go.work file.
func (r *goRequirement) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "//")
		switch words := strings.Fields(line); {
		case len(words) == 2 && words[0] == "go":
			r.language = newer(r.language, "go"+words[1])
		case len(words) == 2 && words[0] == "toolchain" && words[1] != "default":
			r.toolchain = newer(r.toolchain, words[1])
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Base(file), err)
	}
	return nil
}

// toolchainFor returns the toolchain to ask for when the local Go is of the
// given version, "" to use the local one. Among what satisfies the go line it
// takes the one that the module names, else the one that built quern, which
// is most likely at hand, else the go line's own.
func (r *goRequirement) toolchainFor(local, own string) string {
	if !version.IsValid(r.language) || version.Compare(local, r.language) >= 0 {
		return ""
	}
	for _, candidate := range []string{r.toolchain, own} {
		if version.IsValid(candidate) && version.Compare(candidate, r.language) >= 0 {
			return candidate
		}
	}
	if version.Lang(r.language) == r.language {
		return r.language + ".0" // "go1.27" is a language, "go1.27.0" a toolchain
	}
	return r.language
}

func newer(a, b string) string {
	if version.Compare(a, b) >= 0 {
		return a
	}
	return b
}
