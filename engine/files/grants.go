// Package files is what a job may touch of the file system. Sandboxed code has
// none; it names paths, and the engine opens them here, within what whoever
// launched the job has granted: reading below the working folder and below each
// --allow-read, writing below each --allow-write and nowhere else.
//
// A grant is a file or a folder with all that is in it. It need not exist yet.
// The grant itself was named by whoever launched the job, so links in its own
// path are followed. What lies below it is reached through os.Root: neither ".."
// nor a link leads out of a grant, unless to where another grant allows it.
//
// Paths are as the user wrote them, relative ones to the working folder.
// Failures are of two kinds, which never mix: a [RefusedError] names the flag
// that would grant the path; an [Error] says what the system said, and answers
// errors.Is with fs.ErrNotExist, fs.ErrPermission, fs.ErrExist and so on.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Grants is what one job may touch. It may be used by many goroutines.
type Grants struct {
	folder string // the working folder
	read   []*grant
	write  []*grant
}

// access is what a grant is for.
type access uint8

const (
	reading access = iota
	writing
)

func (a access) String() string { return [...]string{"reading", "writing"}[a] }
func (a access) flag() string   { return [...]string{"--allow-read", "--allow-write"}[a] }

func (g *Grants) grants(a access) []*grant {
	if a == reading {
		return g.read
	}
	return g.write
}

// New returns the grants of a job that runs in a working folder: reading below
// it, and what the paths of --allow-read and --allow-write add.
func New(folder string, read, write []string) (*Grants, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("the working folder %s: %w", folder, err)
	}
	g := &Grants{folder: folder, read: []*grant{{path: folder}}}
	add := func(to []*grant, a access, paths []string) []*grant {
		for _, path := range paths {
			abs, e := g.Abs(path)
			if e != nil && err == nil {
				err = fmt.Errorf("%s %q: %w", a.flag(), path, e)
			}
			to = append(to, &grant{path: abs})
		}
		return to
	}
	g.read = add(g.read, reading, read)
	g.write = add(g.write, writing, write)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Close lets go of the folders that reading has opened. The Grants must not be
// used afterwards.
func (g *Grants) Close() {
	for _, gr := range g.read {
		gr.close()
	}
}

// Abs returns a path as the user wrote it as a clean absolute one.
func (g *Grants) Abs(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case strings.IndexByte(path, 0) >= 0:
		return "", fmt.Errorf("the path %q has a zero byte in it", path)
	case isURL(path):
		return "", fmt.Errorf("%s: this version reads and writes local files only: give a path", path)
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(g.folder, path), nil
}

// isURL says whether a path looks like s3://bucket/key or file:///name.
func isURL(path string) bool {
	scheme, _, found := strings.Cut(path, "://")
	return found && scheme != "" && !strings.ContainsAny(scheme, `/\`)
}

// grant is one granted path, absolute and clean.
type grant struct {
	path string

	// The folder, open, once it was read.
	mu   sync.Mutex
	root *os.Root
}

func (gr *grant) close() {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if gr.root != nil {
		gr.root.Close()
		gr.root = nil
	}
}

// opened returns the grant's folder, open until the Grants are closed.
func (gr *grant) opened() (*os.Root, error) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if gr.root == nil {
		root, err := os.OpenRoot(gr.path)
		if err != nil {
			return nil, err
		}
		gr.root = root
	}
	return gr.root, nil
}

// do calls op with a root and a name in it that stand for the path at rel below
// the grant, "." for the grant itself.
func (gr *grant) do(a access, rel string, op func(*os.Root, string) error) error {
	if rel == "." {
		// The grant may be a file or be missing, so its parent is the root, with
		// the grant's own links followed.
		path := gr.path
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		root, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer root.Close()
		name := filepath.Base(path)
		if name == string(filepath.Separator) {
			name = "."
		}
		return op(root, name)
	}
	if a == reading {
		root, err := gr.opened()
		if err != nil {
			return err
		}
		return op(root, rel)
	}
	// A folder for writing may be removed and made again, so it is not kept.
	root, err := os.OpenRoot(gr.path)
	if err != nil {
		return err
	}
	defer root.Close()
	return op(root, rel)
}

// find returns the grant that allows the path, and the path's place below it.
func (g *Grants) find(a access, path string) (*grant, string) {
	for _, gr := range g.grants(a) {
		if rel, ok := below(gr.path, path); ok {
			return gr, rel
		}
	}
	return nil, ""
}

// findReal is find for a path without links: grants are compared without links
// too.
func (g *Grants) findReal(a access, path string) (*grant, string) {
	for _, gr := range g.grants(a) {
		if rel, ok := below(withoutLinks(gr.path), path); ok {
			return gr, rel
		}
	}
	return nil, ""
}

// below returns path's place in folder, "." for folder itself, and whether it
// has one. Both are absolute and clean.
func below(folder, path string) (string, bool) {
	if path == folder {
		return ".", true
	}
	if !strings.HasSuffix(folder, string(filepath.Separator)) { // unlike "/"
		folder += string(filepath.Separator)
	}
	return strings.CutPrefix(path, folder)
}

// withoutLinks follows the links in as much of an absolute path as exists.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(withoutLinks(parent), filepath.Base(path))
}

// at calls op with a root and a name in it that stand for path, which is
// absolute. op may be called twice, the second time after it has failed. Reading
// follows a link that path itself is, writing acts on the link. A path that no
// grant allows is a *RefusedError, and what op fails with an *Error, unless it
// is one already.
func (g *Grants) at(a access, path string, op func(*os.Root, string) error) error {
	gr, rel := g.find(a, path)
	if gr == nil {
		return &RefusedError{Doing: a.String(), Path: path, Flag: a.flag()}
	}
	err := gr.do(a, rel, op)
	if err == nil || explained(err) {
		return err
	}
	// os.Root follows no absolute link and none that leads out of it. It may
	// still lead to where a grant allows it.
	var real string
	if a == reading {
		real = withoutLinks(path)
	} else {
		real = filepath.Join(withoutLinks(filepath.Dir(path)), filepath.Base(path))
	}
	if real != path {
		gr, rel := g.findReal(a, real)
		if gr == nil {
			return &RefusedError{Doing: a.String(), Path: path, Real: real, Flag: a.flag()}
		}
		err = gr.do(a, rel, op)
	} else if _, e := os.Stat(path); a == reading && errors.Is(e, fs.ErrNotExist) {
		err = e // a link to nowhere
	}
	if err == nil || explained(err) {
		return err
	}
	return Explain(a.String(), path, err)
}
