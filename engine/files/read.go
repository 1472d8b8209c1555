package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// errNotRegular is a device, a pipe or a socket in the place of a file.
	errNotRegular = errors.New("it is neither a file nor a folder")
	errFolder     = errors.New("it is a folder, not a file")
)

// Stat describes what a path leads to, links followed. Path is absolute, here
// and below.
func (g *Grants) Stat(path string) (info fs.FileInfo, err error) {
	err = g.at(reading, path, func(root *os.Root, name string) (err error) {
		info, err = root.Stat(name)
		return err
	})
	return info, err
}

// Open opens a regular file for reading.
func (g *Grants) Open(path string) (f *os.File, err error) {
	err = g.at(reading, path, func(root *os.Root, name string) (err error) {
		f, err = openRegular(root, name)
		return err
	})
	return f, err
}

func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = errFolder
	case !info.Mode().IsRegular():
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Opener opens regular files for reading, one after the other. It keeps the
// folder of the last one open, because opening a file through os.Root costs
// system calls for each folder on the way. It belongs to one goroutine.
type Opener struct {
	g      *Grants
	folder string
	root   *os.Root // nil if the folder as a whole is not granted
}

// Opener returns an opener, which must be closed.
func (g *Grants) Opener() *Opener { return &Opener{g: g} }

// Open does what Grants.Open does.
func (o *Opener) Open(path string) (*os.File, error) {
	slash := strings.LastIndexByte(path, filepath.Separator)
	if folder := path[:slash+1]; folder != o.folder {
		o.Close()
		o.folder = folder
		// On failure each file is opened by itself, and says what is wrong.
		_ = o.g.at(reading, filepath.Clean(folder), func(root *os.Root, name string) (err error) {
			o.root, err = root.OpenRoot(name)
			return err
		})
	}
	if o.root != nil {
		if f, err := openRegular(o.root, path[slash+1:]); err == nil {
			return f, nil
		}
	}
	return o.g.Open(path)
}

// Close lets go of the folder.
func (o *Opener) Close() {
	if o.root != nil {
		o.root.Close()
	}
	o.root, o.folder = nil, ""
}

// File is a regular file that was found.
type File struct {
	Path string // absolute
	Size int64  // bytes
}

// Walk lists the regular files in a folder and its folders, in the order of
// their paths' bytes. Files and folders whose name skip answers true for are
// left out. Links are followed, but not to a folder that is being walked.
// A device, a pipe or a socket on the way is an error.
func (g *Grants) Walk(folder string, skip func(name string) bool) ([]File, error) {
	w := walk{grants: g, skip: skip}
	err := g.at(reading, folder, func(root *os.Root, name string) error {
		sub, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		return w.folder(sub, folder)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(w.found, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return w.found, nil
}

type walk struct {
	grants *Grants
	skip   func(string) bool
	open   []fs.FileInfo // the folders from the top to the present one
	found  []File
}

func (w *walk) folder(root *os.Root, path string) error {
	fail := func(path string, cause error) error { return Explain(reading.String(), path, cause) }
	info, err := root.Stat(".")
	if err != nil {
		return fail(path, err)
	}
	for _, above := range w.open {
		if os.SameFile(above, info) {
			return nil // a link back to where we come from
		}
	}
	w.open = append(w.open, info)
	defer func() { w.open = w.open[:len(w.open)-1] }()

	f, err := root.Open(".")
	if err != nil {
		return fail(path, err)
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return fail(path, err)
	}
	for _, e := range entries {
		name := e.Name()
		if w.skip(name) {
			continue
		}
		in := filepath.Join(path, name)
		switch {
		case e.Type().IsRegular():
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed just now
			}
			if err != nil {
				return fail(in, err)
			}
			w.found = append(w.found, File{in, info.Size()})
		case e.IsDir():
			sub, err := root.OpenRoot(name)
			if err != nil {
				return fail(in, err)
			}
			err = w.folder(sub, in)
			sub.Close()
			if err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
			if err := w.link(in); err != nil {
				return err
			}
		default:
			return fail(in, errNotRegular)
		}
	}
	return nil
}

func (w *walk) link(path string) error {
	info, err := w.grants.Stat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		w.found = append(w.found, File{path, info.Size()})
		return nil
	case !info.IsDir():
		return Explain(reading.String(), path, errNotRegular)
	}
	return w.grants.at(reading, path, func(root *os.Root, name string) error {
		sub, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		return w.folder(sub, path)
	})
}
