package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NotJobError says why a module that can be read is not a job.
type NotJobError struct {
	Problems []string // as Info.JobProblems gives them; at least one
	NoSDK    bool     // it is an ordinary program, and everything else follows from that
}

func (e *NotJobError) Error() string {
	if e.NoSDK {
		return "not a Quern job: it does not use a Quern SDK ('quern new NAME' makes a project that does, 'quern inspect' says more)"
	}
	const most = 3
	shown := e.Problems
	if len(shown) > most {
		shown = shown[:most]
	}
	text := "not a Quern job: " + strings.Join(shown, "; ")
	if n := len(e.Problems) - len(shown); n > 0 {
		text += fmt.Sprintf("; and %d more reasons (quern inspect lists them)", n)
	}
	return text
}

var void = Signature{}

// JobProblems lists every reason why the module is not a job, one line each;
// it is empty when the module is one.
func (i *Info) JobProblems(o Options) []string {
	var p []string
	add := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }

	i.checkVersions(o, add)
	i.checkImports(o, add)
	i.checkExports(o, add)
	i.checkMemory(o, add)
	for _, f := range i.unsupported {
		add("it uses %s, which jobs do not have; compile it for WebAssembly 2.0 without that feature", f)
	}
	if i.tableMutation != "" {
		add("it changes a table while it runs (%s); tables are not part of what an action captures, "+
			"so they must stay as instantiation made them", i.tableMutation)
	}
	for _, g := range i.badGlobals {
		add("its mutable global %s cannot be captured; only i32, i64, f32 and f64 can", g)
	}
	return p
}

// plain says whether the module imports nothing of a job's, but only what an
// ordinary program may.
func (i *Info) plain(o Options) bool {
	for _, imp := range i.Imports {
		if _, allowed := o.Imports[imp.Module]; !allowed || imp.Module == o.Yield.Module {
			return false
		}
	}
	return true
}

type addFunc func(format string, args ...any)

// versioned splits a name that ends in a decimal number.
func versioned(name string) (prefix, version string) {
	prefix = strings.TrimRight(name, "0123456789")
	return prefix, name[len(prefix):]
}

// checkVersions finds jobs of another version of the contract: they export
// the required name with another number. It comes first because a difference
// of versions explains most other problems.
func (i *Info) checkVersions(o Options, add addFunc) {
	for _, name := range slices.Sorted(maps.Keys(o.Exports)) {
		if i.export(name) != nil {
			continue
		}
		if theirs := i.otherVersions(name); len(theirs) > 0 {
			_, ours := versioned(name)
			add("it speaks version %s of the job interface, this quern speaks version %s; "+
				"rebuild the job with the SDK of this quern, or run it with the quern it was built for",
				strings.Join(theirs, " and "), ours)
		}
	}
}

func (i *Info) otherVersions(name string) (theirs []string) {
	prefix, version := versioned(name)
	if version == "" {
		return nil
	}
	for _, e := range i.Exports {
		if p, v := versioned(e.Name); p == prefix && v != "" {
			theirs = append(theirs, v)
		}
	}
	return theirs
}

func (i *Info) checkImports(o Options, add addFunc) {
	modules := strings.Join(slices.Sorted(maps.Keys(o.Imports)), " and ")
	for _, imp := range i.Imports {
		what := show(imp.Module) + "." + show(imp.Name)
		if imp.Kind != KindFunction {
			add("it imports a %s, %s; a job imports functions only and brings its own memory and tables", imp.Kind, what)
			continue
		}
		functions, ok := o.Imports[imp.Module]
		if !ok {
			hint := ""
			if imp.Module == "gojs" || imp.Module == "go" {
				hint = "; build it with GOOS=wasip1 instead of GOOS=js"
			}
			add("it imports %s %s, but a job may import from %s only%s", what, imp.Type, modules, hint)
			continue
		}
		want, ok := functions[imp.Name]
		switch {
		case !ok:
			add("it imports %s %s, which this quern does not offer", what, imp.Type)
		case !want.Equal(imp.Type):
			add("it imports %s with the type %s, but that is %s", what, imp.Type, want)
		}
	}
	if o.Interval > 0 && i.importedFunction(o.Yield) < 0 {
		add("it does not import %s %s, through which the engine stops tasks; every SDK imports it", o.Yield, void)
	}
}

func (i *Info) checkExports(o Options, add addFunc) {
	for _, name := range slices.Sorted(maps.Keys(o.Exports)) {
		want, have := o.Exports[name], i.export(name)
		switch {
		case have == nil:
			if len(i.otherVersions(name)) == 0 {
				add("it does not export the function %s %s", name, want)
			}
		case have.Kind != KindFunction:
			add("its export %s is a %s, not a function of type %s", name, have.Kind, want)
		case !want.Equal(have.Type):
			add("its export %s has the type %s, not %s", name, have.Type, want)
		}
	}
	for _, e := range i.Exports {
		if strings.HasPrefix(e.Name, reservedPrefix) {
			add("it exports %s; names that begin with %q are reserved for the engine", show(e.Name), reservedPrefix)
		}
	}
}

func (i *Info) checkMemory(o Options, add addFunc) {
	switch len(i.Memories) {
	case 0:
		add("it has no memory")
	case 1:
		m, most := i.Memories[0], o.maxPages()
		if m.HasMax && m.Max == 0 {
			add("its memory has a maximum of 0 pages")
		}
		if m.Min > uint64(most) {
			add("its memory begins with %d pages (%d MiB), more than the limit of %d pages (%d MiB)",
				m.Min, m.Min/16, most, most/16)
		}
	default:
		add("it has %d memories; a job has one", len(i.Memories))
	}
}

func (o Options) maxPages() uint32 {
	if o.MaxPages == 0 || o.MaxPages > maxPages {
		return maxPages
	}
	return o.MaxPages
}
