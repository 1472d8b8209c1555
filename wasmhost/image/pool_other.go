//go:build !linux

package image

import "errors"

func newFilePool() (pool, error) {
	return nil, errors.New("images are mapped on Linux only")
}
