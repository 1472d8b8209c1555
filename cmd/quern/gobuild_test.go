package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quern-project/quern/sdk"
)

func TestToolchainIsNamedOnlyWhenTheLocalOneIsTooOld(t *testing.T) {
	for _, c := range []struct {
		name, goLine, toolchainLine, local, own, want string
	}{
		{"new enough", "go1.27.0", "", "go1.27.1", "go1.27.3", ""},
		{"the same", "go1.27.0", "go1.27.9", "go1.27.0", "go1.27.3", ""},
		{"nothing asked", "", "", "go1.20", "go1.27.3", ""},
		{"quern's own is at hand", "go1.27.0", "", "go1.26.8", "go1.27.3", "go1.27.3"},
		{"the module names one", "go1.27.0", "go1.27.2", "go1.26.8", "go1.27.3", "go1.27.2"},
		{"it names one that is too old", "go1.27.5", "go1.27.2", "go1.26.8", "go1.28.0", "go1.28.0"},
		{"newer than quern's own", "go1.28.1", "", "go1.26.8", "go1.27.3", "go1.28.1"},
		{"a language, not a release", "go1.28", "", "go1.26.8", "go1.27.3", "go1.28.0"},
		{"quern was built by a development version", "go1.27.0", "", "go1.26.8", "devel go1.28-abc", "go1.27.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := goRequirement{language: c.goLine, toolchain: c.toolchainLine}
			if got := asked.toolchainFor(c.local, c.own); got != c.want {
				t.Errorf("toolchain %q, want %q", got, c.want)
			}
		})
	}
}

func TestRequirementIsTheHighestOfModuleAndWorkspace(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/a // go 9.9\n\ngo 1.26.0 // at least\n\nrequire (\n\texample.com/b v1.0.0\n)\n",
		"go.work": "go 1.27.0\ntoolchain go1.27.2\nuse .\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var asked goRequirement
	for _, name := range []string{"go.mod", "go.work"} {
		if err := asked.read(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if want := (goRequirement{"go1.27.0", "go1.27.2"}); asked != want {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

// A go command that says it is old and forbidden to switch gets the toolchain
// named in its environment; one that may switch is left alone.
func TestEnvironmentForAnOldGo(t *testing.T) {
	dir := t.TempDir()
	mod := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(mod, []byte("module example.com/a\n\ngo 1.27.0\n\ntoolchain go1.27.1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"local": "go1.27.1", "auto": ""} {
		old := filepath.Join(dir, "go-"+setting)
		script := fmt.Sprintf("#!/bin/sh\necho '{\"GOVERSION\":\"go1.26.8\",\"GOTOOLCHAIN\":%q,\"GOMOD\":%q,\"GOWORK\":\"\"}'\n", setting, mod)
		if err := os.WriteFile(old, []byte(script), 0o777); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOTOOLCHAIN", "") // of whoever runs the test
		os.Unsetenv("GOTOOLCHAIN")
		var stderr bytes.Buffer
		env, err := goEnvironment(t.Context(), old, dir, &stderr)
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		var got string
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, "GOTOOLCHAIN="); ok {
				got = value
			}
		}
		if got != want {
			t.Errorf("with GOTOOLCHAIN=%s the environment has GOTOOLCHAIN=%q, want %q", setting, got, want)
		}
		if !slices.Contains(env, "GOOS=wasip1") || !slices.Contains(env, "GOARCH=wasm") {
			t.Errorf("environment %q is not for WebAssembly", env)
		}
	}
}

func TestFolderIsBuiltIntoTheCacheAndAgainWhenItChanges(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write := func(message string) {
		for name, text := range map[string]string{
			"go.mod":  "module example.com/a\n\ngo 1.27.0\n",
			"main.go": fmt.Sprintf("package main\n\nfunc main() { println(%q) }\n", message),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	build := func() []byte {
		t.Helper()
		var stderr bytes.Buffer
		wasm, err := buildCached(t.Context(), dir, cache, &stderr, newLog(&stderr, false))
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		return wasm
	}
	write("first message")
	first := build()
	if !bytes.Contains(first, []byte("first message")) {
		t.Error("the module does not have the source's text")
	}
	if !bytes.Equal(build(), first) {
		t.Error("the same source gave another module")
	}
	write("second message")
	if second := build(); !bytes.Contains(second, []byte("second message")) {
		t.Error("a change of the source did not change the module")
	}
	modules, err := filepath.Glob(filepath.Join(cache, "built", "*.wasm"))
	if err != nil || len(modules) != 1 {
		t.Errorf("the cache holds %q (%v), want one module", modules, err)
	}

	// Without a cache nothing stays.
	t.Setenv("TMPDIR", t.TempDir())
	var stderr bytes.Buffer
	if _, err := buildCached(t.Context(), dir, "", &stderr, newLog(&stderr, false)); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "quern-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
}

func TestNewProjectAsksForTheSDKsGo(t *testing.T) {
	root, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod := goMod("hello")
	for line := range strings.Lines(string(root)) {
		if strings.HasPrefix(line, "go ") && !strings.Contains(mod, "\n"+line) {
			t.Errorf("go.mod of a new project is\n%s, want the line %q of the SDK's own", mod, line)
		}
	}
	if own := runtime.Version(); own != "go"+sdk.GoVersion && !strings.Contains(mod, "toolchain "+own) {
		t.Errorf("go.mod of a new project is\n%s, want the toolchain %s that built this", mod, runtime.Version())
	}
}
