//go:build !linux && !darwin

package driver

import "os"

// lockFolder locks no folder here.
func lockFolder(string, bool) *os.File { return nil }
