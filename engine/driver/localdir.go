package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quern-project/quern/engine/conf"
)

// localPrefix begins the names of applications' folders in quern.local.dir. No
// folder of anybody else's should be called so.
const localPrefix = "quern-app-"

// localDir is an application's folder for shuffle files. Its lock says that the
// application lives: whoever finds a folder without removes it, because its
// application was killed before it could.
type localDir struct {
	path string
	lock *os.File // nil where folders cannot be locked: then they are not removed, either
	// swept is closed when the folders of killed applications are gone.
	swept chan struct{}
}

// newLocalDir makes a folder in parent, and removes what others have left there.
func newLocalDir(parent string) (*localDir, error) {
	d := &localDir{swept: make(chan struct{})}
	for {
		path, err := os.MkdirTemp(parent, localPrefix+"*")
		if err != nil {
			return nil, fmt.Errorf("making a folder for shuffle files (%s): %w", conf.LocalDir.Name(), err)
		}
		d.path, d.lock = path, lockFolder(path, true)
		// Before it was locked, another application may have removed it.
		if isThere(path, d.lock) {
			break
		}
		if d.lock != nil {
			d.lock.Close()
		}
	}
	go func() {
		defer close(d.swept)
		sweep(filepath.Dir(d.path))
	}()
	return d, nil
}

// remove removes the folder and all that is in it.
func (d *localDir) remove() error {
	<-d.swept
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// sweep removes the folders of applications that were killed. What it cannot
// remove costs disk, and no job its result.
func sweep(parent string) {
	f, err := os.Open(parent)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1000)
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), localPrefix) {
				removeIfAbandoned(filepath.Join(parent, e.Name()))
			}
		}
		if err != nil {
			return
		}
	}
}

func removeIfAbandoned(path string) {
	lock := lockFolder(path, false)
	if lock == nil {
		return
	}
	defer lock.Close()
	if isThere(path, lock) {
		_ = os.RemoveAll(path)
	}
}

// isThere says whether there is a folder at a path, and if it is locked, whether
// that is the one.
func isThere(path string, lock *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil || !there.IsDir() || lock == nil {
		return err == nil && there.IsDir()
	}
	locked, err := lock.Stat()
	return err == nil && os.SameFile(locked, there)
}
