package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quern-project/quern/engine/msg"
)

// Remove deletes all files of a shuffle in a folder of writers and readers:
// data files as well as what unfinished ones are working with. A folder that is
// not there has none.
func Remove(dir string, shuffle msg.ShuffleID) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing shuffle %d: %w", shuffle, err)
	}
	prefix := fmt.Sprintf("shuffle_%d_", shuffle)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || e.IsDir() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing shuffle %d: %w", shuffle, err)
		}
	}
	return nil
}
