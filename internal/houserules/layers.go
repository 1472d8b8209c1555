package houserules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// architecturePage is where the layers are read from.
const architecturePage = "docs/architecture.md"

// rows of the table of packages begin so: "| `engine/source`, `engine/sink` | ..."
var packageRow = regexp.MustCompile("(?m)^\\| (`[a-z0-9/]+`(?:, `[a-z0-9/]+`)*) \\|")

// Layers returns the folders in the architecture page's table of packages, the
// lowest first. A folder stands for all below it that have no row themselves.
func Layers(t *Tree) []string {
	var layers []string
	for _, row := range packageRow.FindAllStringSubmatch(t.find(architecturePage), -1) {
		for cell := range strings.SplitSeq(row[1], ", ") {
			layers = append(layers, strings.Trim(cell, "`"))
		}
	}
	return layers
}

// layerOf returns the position of the layer that dir belongs to, -1 if none.
func layerOf(layers []string, dir string) int {
	best := -1
	for i, layer := range layers {
		if below(dir, layer) && (best < 0 || len(layer) > len(layers[best])) {
			best = i
		}
	}
	return best
}

// LayersPointDown reports imports of a package that is higher up in the table
// of packages, and packages that are not in it.
func LayersPointDown(t *Tree) []Finding {
	layers := Layers(t)
	if len(layers) == 0 {
		return []Finding{{Path: architecturePage, Text: "has no table of packages"}}
	}
	var findings []Finding
	missing := map[string]bool{}
	for _, f := range t.production() {
		own := layerOf(layers, f.Dir())
		if own < 0 {
			if !missing[f.Dir()] {
				missing[f.Dir()] = true
				findings = append(findings, Finding{Path: f.Dir(),
					Text: "is not in the table of packages of " + architecturePage + ": give it a row at its height"})
			}
			continue
		}
		for _, spec := range f.Go.Imports {
			dir, ok := inside(importPath(spec))
			if !ok {
				continue
			}
			if other := layerOf(layers, dir); other > own {
				findings = append(findings, Finding{f.Path, t.line(spec.Pos()),
					fmt.Sprintf("imports %s, which is above %s in %s", dir, layers[own], architecturePage)})
			}
		}
	}
	return findings
}

// strangers are the parts that must not know of each other whatever the order
// of the table.
var strangers = []struct{ part, other string }{
	{"wasmhost", "engine"},
	{"net", "engine"},
	{"wasmhost", "net"},
	{"wasmhost", "cmd"},
	{"engine", "deploy"},
	{"engine", "cmd"},
	{"engine", "jobs"},
}

// StrangersStayStrangers reports imports between parts that must not know of
// each other.
func StrangersStayStrangers(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.production() {
		for _, spec := range f.Go.Imports {
			dir, ok := inside(importPath(spec))
			for _, s := range strangers {
				if ok && below(f.Dir(), s.part) && below(dir, s.other) {
					findings = append(findings, Finding{f.Path, t.line(spec.Pos()),
						fmt.Sprintf("imports %s: %s knows nothing of %s", dir, s.part, s.other)})
				}
			}
		}
	}
	return findings
}

// guestCode is what is compiled into jobs, with what it may import of the
// project beside the standard library.
var guestCode = map[string][]string{
	"sdk":                {"sdk/abi"},
	"jobs":               {"sdk/abi", "sdk/quern", "jobs"},
	"cmd/quern/template": {"sdk/quern"},
}

// GuestsNeedNothing reports imports in guest code of anything that is neither
// in the standard library nor in the SDK, so that a job builds without a
// network and stays small.
func GuestsNeedNothing(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.production() {
		for root, allowed := range guestCode {
			if !below(f.Dir(), root) {
				continue
			}
			for _, spec := range f.Go.Imports {
				p := importPath(spec)
				dir, ok := inside(p)
				if standard(p) || ok && anyAbove(allowed, dir) {
					continue
				}
				findings = append(findings, Finding{f.Path, t.line(spec.Pos()),
					fmt.Sprintf("imports %s: code for guests takes the standard library and %s alone",
						p, strings.Join(allowed, ", "))})
			}
		}
	}
	return findings
}

// standard says whether an import path is of the standard library: only there
// has the first element no dot.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

func anyAbove(roots []string, dir string) bool {
	for _, root := range roots {
		if below(dir, root) {
			return true
		}
	}
	return false
}

// rationalePage is where dependencies are accounted for.
const rationalePage = "docs/rationale.md"

// rows of the table of dependencies begin so: "| google/go-cmp, pgregory.net/rapid | ..."
var dependencyRow = regexp.MustCompile(`(?m)^\| ([\w./, -]+/[\w./, -]+) \|`)

// DependenciesHaveReasons reports imported modules without a row in the
// rationale's table of dependencies, and rows of modules that are not imported.
func DependenciesHaveReasons(t *Tree) []Finding {
	used := map[string]bool{} // by the name in the table
	for _, row := range dependencyRow.FindAllStringSubmatch(t.find(rationalePage), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			used[name] = false
		}
	}
	var findings []Finding
	for _, f := range t.Files {
		if f.Go == nil {
			continue
		}
		for _, spec := range f.Go.Imports {
			p := importPath(spec)
			if _, own := inside(p); own || standard(p) {
				continue
			}
			name := listedAs(used, strings.TrimPrefix(p, "github.com/"))
			if name == "" {
				findings = append(findings, Finding{f.Path, t.line(spec.Pos()),
					fmt.Sprintf("imports %s, which has no row in the table of dependencies of %s", p, rationalePage)})
				continue
			}
			used[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !used[name] {
			findings = append(findings, Finding{Path: rationalePage,
				Text: fmt.Sprintf("gives a reason for %s, which nothing imports", name)})
		}
	}
	return findings
}

// listedAs returns the entry that an import path belongs to, "" if none.
func listedAs(entries map[string]bool, p string) string {
	for name := range entries {
		if below(p, name) {
			return name
		}
	}
	return ""
}
