// Package houserules checks the project's own source against its house rules:
// that dependencies point downwards, that the pure cores are pure, that
// packages explain themselves. Each rule is a function from a [Tree] to
// findings, so that each can be shown a bad example; the package's test runs
// all of them over the repository.
//
// The layers are not written down here: they are read from the table in
// docs/architecture.md, so that page cannot go stale.
package houserules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// modulePath is what import paths of the project begin with.
const modulePath = "github.com/quern-project/quern"

// Finding is one breach of a rule.
type Finding struct {
	Path string // relative to the repository, with slashes
	Line int    // 0 for the file or folder as a whole
	Text string // what is wrong and what to do instead
}

func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.Path, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text)
}

// File is one file of the repository. Go files are parsed.
type File struct {
	Path string
	Size int64
	Text string    // empty for files that no rule reads
	Go   *ast.File // nil unless it is a Go file
}

// Dir is the folder of the file, "." for the top.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest says whether the file is compiled for tests alone.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Tree is the repository's files in the order of their paths.
type Tree struct {
	Files []*File
	fset  *token.FileSet
}

// NewTree makes a tree of the given texts by path.
func NewTree(texts map[string]string) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	for p, text := range texts {
		if err := t.add(p, int64(len(text)), text); err != nil {
			return nil, err
		}
	}
	t.sort()
	return t, nil
}

// ReadTree reads the files of the git repository at root that are committed or
// would be by adding everything.
func ReadTree(root string) (*Tree, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s with git: %w", root, err)
	}
	t := &Tree{fset: token.NewFileSet()}
	for _, name := range bytes.Split(list, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		p := string(name)
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(p)))
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue // removed but not yet committed, or a link
		}
		if err != nil {
			return nil, err
		}
		var text []byte
		if slices.Contains([]string{".go", ".md", ".txtar"}, path.Ext(p)) {
			if text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(p))); err != nil {
				return nil, err
			}
		}
		if err := t.add(p, info.Size(), string(text)); err != nil {
			return nil, err
		}
	}
	t.sort()
	return t, nil
}

func (t *Tree) add(p string, size int64, text string) error {
	f := &File{Path: p, Size: size, Text: text}
	// What lies below testdata is not the project's Go code.
	if path.Ext(p) == ".go" && !strings.Contains("/"+p, "/testdata/") {
		var err error
		if f.Go, err = parser.ParseFile(t.fset, p, text, parser.ParseComments); err != nil {
			return err
		}
	}
	t.Files = append(t.Files, f)
	return nil
}

func (t *Tree) sort() {
	slices.SortFunc(t.Files, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
}

func (t *Tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// find returns the text of a file, "" if there is none.
func (t *Tree) find(p string) string {
	for _, f := range t.Files {
		if f.Path == p {
			return f.Text
		}
	}
	return ""
}

// production returns the Go files that are not tests.
func (t *Tree) production() []*File {
	var files []*File
	for _, f := range t.Files {
		if f.Go != nil && !f.IsTest() {
			files = append(files, f)
		}
	}
	return files
}

// inside returns the folder of the project that an import path names, and
// whether it is one of the project's.
func inside(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, modulePath+"/")
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser takes nothing else than a string
	}
	return p
}

// below says whether dir is root or lies below it.
func below(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }
