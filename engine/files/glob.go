package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// HasPattern says whether a path has a pattern of Glob in it.
func HasPattern(path string) bool { return strings.ContainsAny(path, `*?[{`) }

// Glob lists the files and folders that a pattern matches, in the order of
// their paths' bytes: * and ? match within a name, [a-z] one character of it,
// {a,b} alternatives, and a name ** any number of folders. In a pattern with **
// links are not followed, because they may lead in circles. A folder that cannot
// be read is an error, as is a link that leads out of the grants; a folder that
// is missing matches nothing.
func (g *Grants) Glob(pattern string) ([]string, error) {
	if !doublestar.ValidatePattern(filepath.ToSlash(pattern)) {
		return nil, Explain(reading.String(), pattern, errors.New("it is not a valid pattern (* ? [a-z] {a,b} **)"))
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	base = filepath.FromSlash(base)
	if _, err := g.Stat(base); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	options := []doublestar.GlobOption{doublestar.WithFailOnIOErrors()}
	if strings.Contains(rest, "**") {
		options = append(options, doublestar.WithNoFollow())
	}
	names, err := doublestar.Glob(granted{g, base}, rest, options...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = filepath.Join(base, filepath.FromSlash(name))
	}
	slices.Sort(names)
	return names, nil
}

// granted is the file system below a folder, as far as reading is granted.
type granted struct {
	g    *Grants
	base string
}

func (f granted) path(name string) string { return filepath.Join(f.base, filepath.FromSlash(name)) }

// Stat implements fs.StatFS.
func (f granted) Stat(name string) (fs.FileInfo, error) { return f.g.Stat(f.path(name)) }

// Open implements fs.FS.
func (f granted) Open(name string) (file fs.File, err error) {
	err = f.g.at(reading, f.path(name), func(root *os.Root, name string) (err error) {
		file, err = root.OpenFile(name, os.O_RDONLY|nonblock, 0)
		return err
	})
	return file, err
}
