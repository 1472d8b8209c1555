package module

import (
	"cmp"
	"math"
)

// Limits bound what a module may contain. They keep parsing cheap and refuse
// modules that would keep a compiler busy for minutes or fill its memory. A
// field that is 0 has the value of DefaultLimits.
type Limits struct {
	Size      int64 // bytes of the whole file, at most 2 GiB
	Types     int   // function types
	Values    int   // parameters or results of one type
	Imports   int
	Functions int // imported and defined
	Tables    int
	TableSize int // initial elements of all tables, and elements of one segment
	Globals   int
	Exports   int
	Segments  int // element segments, and as many data segments
	Body      int // bytes of one function's body
	Locals    int // locals of one function, parameters included
	Depth     int // nested blocks of one function
	Targets   int // entries of one br_table
	// Work bounds the estimated time for compiling what does not compile in time
	// proportional to its length, in units of about 100 ns; see effort.
	Work int64
}

// DefaultLimits are well above what compilers emit for large programs. The Go
// compiler itself, built for wasip1, is a module of 53 MB with 20,000 functions,
// bodies of up to 760 KB, 8,600 nested blocks, br_tables of 12,000 targets, 21
// locals and a Work of 18 million.
func DefaultLimits() Limits {
	return Limits{
		Size:      128 << 20,
		Types:     20_000,
		Values:    200,
		Imports:   2_000,
		Functions: 500_000,
		Tables:    100,
		TableSize: 2_000_000,
		Globals:   10_000,
		Exports:   20_000,
		Segments:  100_000,
		Body:      8 << 20,
		Locals:    20_000,
		Depth:     20_000,
		Targets:   100_000,
		Work:      40_000_000,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Size:      min(cmp.Or(l.Size, d.Size), math.MaxInt32),
		Types:     cmp.Or(l.Types, d.Types),
		Values:    cmp.Or(l.Values, d.Values),
		Imports:   cmp.Or(l.Imports, d.Imports),
		Functions: cmp.Or(l.Functions, d.Functions),
		Tables:    cmp.Or(l.Tables, d.Tables),
		TableSize: cmp.Or(l.TableSize, d.TableSize),
		Globals:   cmp.Or(l.Globals, d.Globals),
		Exports:   cmp.Or(l.Exports, d.Exports),
		Segments:  cmp.Or(l.Segments, d.Segments),
		Body:      cmp.Or(l.Body, d.Body),
		Locals:    cmp.Or(l.Locals, d.Locals),
		Depth:     cmp.Or(l.Depth, d.Depth),
		Targets:   cmp.Or(l.Targets, d.Targets),
		Work:      cmp.Or(l.Work, d.Work),
	}
}
