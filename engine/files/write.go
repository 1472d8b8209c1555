package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Exists says whether there is anything at a path that may be written to,
// links not followed.
func (g *Grants) Exists(path string) (bool, error) {
	err := g.at(writing, path, func(root *os.Root, name string) error {
		_, err := root.Lstat(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// WrittenSize returns the size in bytes of a regular file that may be written.
func (g *Grants) WrittenSize(path string) (size int64, err error) {
	err = g.at(writing, path, func(root *os.Root, name string) error {
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return errNotRegular
		}
		size = info.Size()
		return nil
	})
	return size, err
}

// MkdirAll makes a folder and those above it, and returns how many it made. A
// folder that is there already is no error.
func (g *Grants) MkdirAll(path string) (made int, err error) {
	gr, _ := g.find(writing, path)
	if gr == nil {
		return 0, &RefusedError{Doing: writing.String(), Path: path, Flag: writing.flag()}
	}
	var missing []string
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			break
		}
		missing = append(missing, p)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if _, ok := below(gr.path, missing[i]); ok {
			err = g.at(writing, missing[i], func(root *os.Root, name string) error { return root.Mkdir(name, 0o777) })
		} else if err = os.Mkdir(missing[i], 0o777); err != nil { // on the way to the grant
			err = Explain(writing.String(), missing[i], err)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return made, err
		}
		made++
	}
	return made, nil
}

// Mkdir makes a folder, of which there must be none yet.
func (g *Grants) Mkdir(path string) error {
	return g.at(writing, path, func(root *os.Root, name string) error { return root.Mkdir(name, 0o777) })
}

// Create makes a file for writing, of which there must be none yet.
func (g *Grants) Create(path string) (f *os.File, err error) {
	err = g.at(writing, path, func(root *os.Root, name string) (err error) {
		f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		return err
	})
	return f, err
}

// Rename moves a file within one granted folder. It replaces a file that is
// there.
func (g *Grants) Rename(from, to string) error {
	realFrom := filepath.Join(withoutLinks(filepath.Dir(from)), filepath.Base(from))
	realTo := filepath.Join(withoutLinks(filepath.Dir(to)), filepath.Base(to))
	gr, relTo := g.findReal(writing, realTo)
	if gr == nil || relTo == "." {
		return &RefusedError{Doing: writing.String(), Path: to, Flag: writing.flag()}
	}
	relFrom, ok := below(withoutLinks(gr.path), realFrom)
	if !ok || relFrom == "." {
		return &RefusedError{Doing: writing.String(), Path: from, Flag: writing.flag()}
	}
	err := gr.do(writing, relTo, func(root *os.Root, _ string) error { return root.Rename(relFrom, relTo) })
	if err != nil {
		return Explain("moving "+from+" to", to, err)
	}
	return nil
}

// Remove removes a file or an empty folder.
func (g *Grants) Remove(path string) error {
	return g.at(writing, path, func(root *os.Root, name string) error { return root.Remove(name) })
}

// RemoveAll removes a file or a folder with all that is in it; what a link
// leads to stays. That there is nothing is no error.
func (g *Grants) RemoveAll(path string) error {
	return g.at(writing, path, func(root *os.Root, name string) error { return root.RemoveAll(name) })
}
