// Package scratchdir makes directories that have an owner, the process that made them.
// When it could not remove its directory because it was killed, the next process that
// makes one of the same kind does.
package scratchdir

import (
	"os"
	"path/filepath"
	"strings"
)

// Dir is a directory of this process. Its lock says that the process lives: whoever
// finds a directory without removes it.
type Dir struct {
	Path string

	lock *os.File // nil where directories cannot be locked: then they are not removed, either
	// swept is closed when the directories of killed processes are gone.
	swept chan struct{}
}

// New makes a directory in parent, with a name that begins with prefix, and begins to
// remove those that killed processes have left there. No directory of another kind
// should be called so.
func New(parent, prefix string) (*Dir, error) {
	d := &Dir{swept: make(chan struct{})}
	for {
		path, err := os.MkdirTemp(parent, prefix+"*")
		if err != nil {
			return nil, err
		}
		d.Path, d.lock = path, lockDir(path, true)
		// Before it was locked, another process may have removed it.
		if isThere(path, d.lock) {
			break
		}
		if d.lock != nil {
			d.lock.Close()
		}
	}
	go func() {
		defer close(d.swept)
		sweep(filepath.Dir(d.Path), prefix)
	}()
	return d, nil
}

// Remove removes the directory and all that is in it.
func (d *Dir) Remove() error {
	<-d.swept
	err := os.RemoveAll(d.Path)
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// sweep removes the directories of processes that were killed. What it cannot remove
// costs disk and nothing else.
func sweep(parent, prefix string) {
	f, err := os.Open(parent)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1000)
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
				removeIfAbandoned(filepath.Join(parent, e.Name()))
			}
		}
		if err != nil {
			return
		}
	}
}

func removeIfAbandoned(path string) {
	lock := lockDir(path, false)
	if lock == nil {
		return
	}
	defer lock.Close()
	if isThere(path, lock) {
		_ = os.RemoveAll(path)
	}
}

// isThere says whether there is a directory at a path, and if it is locked, whether
// that is the one.
func isThere(path string, lock *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil || !there.IsDir() || lock == nil {
		return err == nil && there.IsDir()
	}
	locked, err := lock.Stat()
	return err == nil && os.SameFile(locked, there)
}
