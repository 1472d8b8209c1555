package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// MakeFolder makes a folder, of which there must be none yet, and those above
// it that are missing. It returns how many it made, also on failure.
func (g *Grants) MakeFolder(path string) (made int, err error) {
	gr, _ := g.find(writing, path)
	if gr == nil {
		return 0, &RefusedError{Doing: writing.String(), Path: path, Flag: writing.flag()}
	}
	missing := []string{path}
	for p := filepath.Dir(path); p != filepath.Dir(p); p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, p)
	}
	for _, p := range slices.Backward(missing) {
		if _, ok := below(gr.path, p); ok {
			err = g.Mkdir(p)
		} else if err = os.Mkdir(p, 0o777); err != nil { // on the way to the grant
			err = Explain(writing.String(), p, err)
		}
		switch {
		case err == nil:
			made++
		case p == path || !errors.Is(err, fs.ErrExist):
			return made, err
		}
	}
	return made, nil
}

// RemoveEmpty removes a folder and those above it, n in all, as MakeFolder made
// them. It stops without an error at one that is not empty, or is not there.
func (g *Grants) RemoveEmpty(path string, n int) error {
	gr, _ := g.find(writing, path)
	if gr == nil {
		return &RefusedError{Doing: writing.String(), Path: path, Flag: writing.flag()}
	}
	for ; n > 0; n-- {
		var err error
		if _, ok := below(gr.path, path); ok {
			err = g.Remove(path)
		} else if err = os.Remove(path); err != nil {
			err = Explain(writing.String(), path, err)
		}
		switch {
		case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist): // not empty is ErrExist, too
			return nil
		case err != nil:
			return err
		}
		path = filepath.Dir(path)
	}
	return nil
}

// Mkdir makes a folder, of which there must be none yet.
func (g *Grants) Mkdir(path string) error {
	return g.at(writing, path, func(root *os.Root, name string) error { return root.Mkdir(name, 0o777) })
}

// ReadBack reads a small file that may be written.
func (g *Grants) ReadBack(path string) (text []byte, err error) {
	err = g.at(writing, path, func(root *os.Root, name string) (err error) {
		text, err = root.ReadFile(name)
		return err
	})
	return text, err
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
// leads to stays. That there is nothing is no error. If somebody else makes
// files in the folder meanwhile, the error may be fs.ErrExist.
func (g *Grants) RemoveAll(path string) error {
	return g.at(writing, path, func(root *os.Root, name string) error { return root.RemoveAll(name) })
}
