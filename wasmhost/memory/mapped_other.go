//go:build !linux

package memory

import "errors"

func newMapped(int64) (backing, error) {
	return nil, errors.New("memories are mapped on Linux only")
}
