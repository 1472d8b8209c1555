package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/sdk"
)

func newCommand() command {
	return command{
		name:  "new",
		args:  "NAME",
		short: "make a project with a first job, its test and the SDK",
		long: `Make the folder NAME with a small job that counts words, its test, some input
and the SDK, so that it builds without a network. NAME may be a path; its last
element is the project's name.`,
		files: true,
		setup: func(*pflag.FlagSet) action {
			return func(ctx context.Context, c *console, args []string) error {
				if len(args) != 1 {
					return usagef("wants one name, has %d arguments", len(args))
				}
				return newProject(ctx, c, args[0])
			}
		},
	}
}

// projectFiles are the files of a new project: a real package, tested with the
// others. NAME in the texts stands for the project's name.
//
//go:embed template/main.go template/main_test.go template/README.md template/input.txt
var projectFiles embed.FS

// sdkFolder is where a project keeps its copy of the SDK. The go command
// ignores folders with a leading dot in patterns such as ./...
const sdkFolder = ".quern/sdk"

const gitignore = "# what 'quern build' and jobs write\n*.wasm\n/out/\n"

// projectName is what is a folder, a module path's element and a file name
// everywhere.
var projectName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

func newProject(ctx context.Context, c *console, path string) error {
	name := filepath.Base(path)
	if path == "" || !projectName.MatchString(name) {
		return usagef("%q is no name for a project: want a letter, then letters, digits, - and _, at most 64", name)
	}
	switch entries, err := os.ReadDir(path); {
	case err == nil && len(entries) > 0:
		return usagef("the folder %s exists and is not empty", path)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
			return usagef("%s exists and is not a folder", path)
		}
		return err
	}
	if err := writeProject(path, name); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	goTest := "go test"
	if needsAuto(ctx, path) {
		goTest = autoGoTest
		if err := adaptReadme(filepath.Join(path, "README.md")); err != nil {
			return fmt.Errorf("making %s: %w", path, err)
		}
	}
	fmt.Fprintf(c.out, `%s is a project now. Next:

  cd %s
  %-24s  the job's test, on this machine, without a sandbox
  quern run . input.txt
`, name, path, goTest)
	return nil
}

// autoGoTest is 'go test' where the local Go is too old and may not switch.
const autoGoTest = "GOTOOLCHAIN=auto go test"

// needsAuto says whether the go command here would refuse the project in dir.
// 'quern build' and 'quern run' name the toolchain themselves.
func needsAuto(ctx context.Context, dir string) bool {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return false // building will say so
	}
	toolchain, err := missingToolchain(ctx, goCommand, dir, os.Environ(), io.Discard)
	return err == nil && toolchain != ""
}

// adaptReadme makes a project's README say how to test where needsAuto is true.
func adaptReadme(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	plain := fmt.Sprintf("    %-*s", len(autoGoTest), "go test")
	return os.WriteFile(file, bytes.Replace(text, []byte(plain), []byte("    "+autoGoTest), 1), 0o666)
}

func writeProject(dir, name string) error {
	if err := sdk.WriteModule(filepath.Join(dir, filepath.FromSlash(sdkFolder))); err != nil {
		return err
	}
	entries, err := projectFiles.ReadDir("template")
	if err != nil {
		return err
	}
	files := map[string]string{"go.mod": goMod(name), ".gitignore": gitignore}
	for _, entry := range entries {
		text, err := projectFiles.ReadFile("template/" + entry.Name())
		if err != nil {
			return err
		}
		files[entry.Name()] = strings.ReplaceAll(string(text), "NAME", name)
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// goMod is the project's go.mod. The toolchain line names the release that
// built quern, the one that the SDK was tested with.
func goMod(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module example.com/%s\n\ngo %s\n", name, sdk.GoVersion)
	if own := runtime.Version(); version.IsValid(own) && version.Compare(own, "go"+sdk.GoVersion) > 0 {
		fmt.Fprintf(&b, "\ntoolchain %s\n", own)
	}
	fmt.Fprintf(&b, "\nrequire %s v0.0.0\n\n// The SDK is a copy in this folder, so the project builds without a network.\nreplace %s => ./%s\n",
		sdk.ModulePath, sdk.ModulePath, sdkFolder)
	return b.String()
}
