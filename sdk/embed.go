// Package sdk carries the source of the Go SDK inside the quern binary, so
// that 'quern new' makes a project that builds without a network.
package sdk

import (
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ModulePath is the path of the module that WriteModule writes, and
// GoVersion the Go release that it needs.
const (
	ModulePath = "github.com/quern-project/quern"
	GoVersion  = "1.27.0"
)

//go:embed abi quern
var sources embed.FS

// WriteModule writes the SDK, without its tests, as a Go module into dir,
// which it makes. Files that are there are overwritten.
func WriteModule(dir string) error {
	root := filepath.Join(dir, "sdk")
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(root, filepath.FromSlash(name))
		switch {
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o777)
		case path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o666)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+ModulePath+"\n\ngo "+GoVersion+"\n"), 0o666)
}
