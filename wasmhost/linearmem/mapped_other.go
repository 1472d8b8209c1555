//go:build !linux

package linearmem

import "errors"

func newMapped(int64) (backing, error) {
	return nil, errors.New("memories are mapped on Linux only")
}
