//go:build !wasip1

package quern

// parkDrivers does nothing where there are no clones.
func parkDrivers() {}
