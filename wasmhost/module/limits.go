package module

// Limits bound what a module may contain. They keep parsing cheap and refuse
// modules that a compiler would need minutes or gigabytes for.
type Limits struct {
	Size int64 // bytes of the whole file
}

// DefaultLimits are generous for what compilers emit.
func DefaultLimits() Limits { return Limits{Size: 128 << 20} }
