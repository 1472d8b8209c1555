//go:build !unix

package memory

func mapPages(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapPages([]byte) {}
