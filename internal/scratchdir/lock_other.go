//go:build !linux && !darwin

package scratchdir

import "os"

// lockDir locks no directory here.
func lockDir(string, bool) *os.File { return nil }
