//go:build !wasip1

package quern

// On the native platform tasks run in one process that belongs to the user, and
// so does its generator.

func findRandom() {}

func reseedRandom(uint64) {}
