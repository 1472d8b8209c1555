package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The complete programs in the documentation compile as jobs.
func TestProgramsInTheDocumentationCompile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "docs")
	if err := newProject(t.Context(), &console{out: new(bytes.Buffer)}, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "main_test.go")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	for i, block := range strings.Split(string(page), "```go\n")[1:] {
		program, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(program, "package main\n") {
			continue
		}
		programs++
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o666); err != nil {
			t.Fatal(err)
		}
		vet := exec.Command("go", "vet", ".")
		vet.Dir = dir
		vet.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOPROXY=off")
		if out, err := vet.CombinedOutput(); err != nil {
			t.Errorf("program %d of docs/tutorial.md: %v\n%s", i+1, err, out)
		}
	}
	if programs < 3 {
		t.Errorf("docs/tutorial.md has %d complete programs, want at least 3", programs)
	}
}
