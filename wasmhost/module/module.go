// Package module turns a WebAssembly binary from a stranger into one that the
// engine can run as a job: it checks the binary before any work is spent on
// it, and rewrites it so that a running instance can be captured, restored,
// metered and stopped.
//
// [Prepare] is the pipeline: parse, check, rewrite. [Inspect] is the first
// step alone, for people who ask what a file is; [Info.JobProblems] says
// everything that keeps it from being a job.
//
// The rewriting is invisible to the module. No type, function, table, memory,
// global or segment changes its index, and results, traps, memory and globals
// are those of the original:
//
//   - Every mutable global is exported under a reserved name. Together with
//     the linear memory that is the whole state of an instance, because
//     modules that change tables while they run are refused.
//   - A counter, a new global behind all others, is charged at function
//     entries, loop heads and bulk memory instructions; when it runs out, the
//     module calls the host ([Options.Yield]). See safepoint.go.
//   - memory.fill and memory.copy become calls of functions, new ones behind all
//     others, that do large ones in pieces. See bulk.go.
//   - The start function is no longer run by instantiation but exported, so
//     that a clone, whose memory is already initialised, does not run it.
//   - The memory's maximum is lowered to [Options.MaxPages].
//
// The package reads hostile input. It never panics, and what it allocates is
// proportional to the length of the input. It does not type-check function
// bodies: that is the compiler's job, and what is inserted or put in the place
// of an instruction takes from the operand stack and leaves on it what was there
// before, so a body that was invalid stays invalid.
package module

// Options say what a job is and how it is rewritten.
type Options struct {
	// Imports are the functions that a job may import: module, then name. There
	// is no other kind of import.
	Imports map[string]map[string]Signature
	// Exports are the functions that a job must export. A name that ends in a
	// decimal number carries the version of the contract.
	Exports map[string]Signature
	// Yield is the safepoint's function, of type () -> (). A job must import it
	// when Interval is not 0.
	Yield Import
	// Interval is the number of rounds between two safepoints, at most 1<<24. A
	// round is an iteration of a small loop, a call of a small function, or the
	// like amount of straight-line code or bulk memory. 0 inserts no
	// safepoints, for measurements: the counter is still there.
	Interval int32
	// MaxPages is the memory's maximum after rewriting, in pages of 64 KiB; a
	// lower maximum of the module's own stays. 0 means 65536, which is 4 GiB.
	MaxPages uint32
	// Limits bound what is accepted. Fields that are 0 have their value of
	// DefaultLimits.
	Limits Limits
}

// Prepared is a job that is ready to be compiled.
type Prepared struct {
	// Code is the rewritten module.
	Code []byte
	// Globals are the export names of all mutable globals in the order of their
	// indices. The last one is the safepoint counter.
	Globals []string
	// Start is the export name of the function, of type () -> (), that the
	// module's start section names; "" if there is none. Whoever instantiates
	// the module calls it once, but not for a clone.
	Start string
	// Added is the index of the first function that the rewriting has added.
	Added int
	// Info describes the module as it was before rewriting.
	Info Info
}

// Import names a function of the host.
type Import struct{ Module, Name string }

func (i Import) String() string { return i.Module + "." + i.Name }

// Reserved export names. A module that exports a name with this prefix is
// refused.
const (
	reservedPrefix = "quern:"
	globalPrefix   = reservedPrefix + "g" // and the decimal number, counting mutable globals alone
	startName      = reservedPrefix + "start"
)
