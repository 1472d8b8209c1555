package houserules

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// PackagesExplainThemselves reports packages without a package comment.
func PackagesExplainThemselves(t *Tree) []Finding {
	explained := map[string]bool{}
	var dirs []string
	names := map[string]string{}
	for _, f := range t.production() {
		dir, name := f.Dir(), f.Go.Name.Name
		if _, seen := names[dir]; !seen {
			names[dir] = name
			dirs = append(dirs, dir)
		}
		start := "Package " + name + " "
		if name == "main" {
			start = "Command "
		}
		if f.Go.Doc != nil && strings.HasPrefix(f.Go.Doc.Text(), start) {
			explained[dir] = true
		}
	}
	var findings []Finding
	for _, dir := range dirs {
		if !explained[dir] {
			want := "Package " + names[dir]
			if names[dir] == "main" {
				want = "Command NAME"
			}
			findings = append(findings, Finding{Path: dir, Text: fmt.Sprintf("has no package comment that begins with %q", want)})
		}
	}
	return findings
}

// vagueNames say nothing about what is inside.
var vagueNames = []string{
	"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base", "stuff",
}

// NamesSayWhatIsInside reports Go files and folders whose name says nothing.
func NamesSayWhatIsInside(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.Files {
		if f.Go == nil {
			continue
		}
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Path), ".go"), "_test")
		if slices.Contains(vagueNames, stem) {
			findings = append(findings, Finding{Path: f.Path, Text: "is named after nothing that is inside"})
		}
		if slices.Contains(vagueNames, path.Base(f.Dir())) {
			findings = append(findings, Finding{Path: f.Path, Text: "lies in a folder that is named after nothing that is inside"})
		}
	}
	return findings
}

// maxLines is how long a file that is not a test may be.
const maxLines = 700

// FilesAreChapters reports files too long to be read in one go.
func FilesAreChapters(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.production() {
		if n := strings.Count(f.Text, "\n"); n > maxLines {
			findings = append(findings, Finding{Path: f.Path,
				Text: fmt.Sprintf("has %d lines, more than %d: cut it into chapters", n, maxLines)})
		}
	}
	return findings
}

// maxFileSize is the largest file to commit, in bytes.
const maxFileSize = 1 << 20

// NothingGeneratedIsCommitted reports binaries and large files.
func NothingGeneratedIsCommitted(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.Files {
		if f.Size > maxFileSize {
			findings = append(findings, Finding{Path: f.Path, Text: fmt.Sprintf("has %d bytes, more than %d", f.Size, maxFileSize)})
		}
		if slices.Contains([]string{".wasm", ".test", ".prof", ".exe", ".o", ".a"}, path.Ext(f.Path)) {
			findings = append(findings, Finding{Path: f.Path, Text: "is generated: make it when it is needed"})
		}
	}
	return findings
}

// skipLine is a testscript command that skips, with or without a condition.
var skipLine = regexp.MustCompile(`(?m)^(\[[^\]]*\]\s*)?skip\b`)

// TestsRun reports tests that skip themselves.
func TestsRun(t *Tree) []Finding {
	const text = "skips: a test that does not run proves nothing"
	var findings []Finding
	for _, f := range t.Files {
		if path.Ext(f.Path) == ".txtar" {
			script, _, _ := strings.Cut(f.Text, "\n-- ")
			for _, at := range skipLine.FindAllStringIndex(script, -1) {
				findings = append(findings, Finding{f.Path, 1 + strings.Count(script[:at[0]], "\n"), text})
			}
		}
		if f.Go == nil || !f.IsTest() {
			continue
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && isTesting(sel.X) &&
					slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
					findings = append(findings, Finding{f.Path, t.line(call.Pos()), text})
				}
			}
			return true
		})
	}
	return findings
}

// TestsDoNotSleep reports tests that wait for a time instead of an event. A test
// that has to poll does it with internal/patience.
func TestsDoNotSleep(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.Files {
		if f.Go == nil || !f.IsTest() {
			continue
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Sleep", "After", "AfterFunc", "Tick"}, sel.Sel.Name) {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" {
					findings = append(findings, Finding{f.Path, t.line(sel.Pos()),
						"calls time." + sel.Sel.Name + ": wait for the event, inject a clock, or poll with internal/patience"})
				}
			}
			return true
		})
	}
	return findings
}

// isTesting says whether an expression is, by its name, a *testing.T or the
// like.
func isTesting(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "b", "f", "tb", "rt", "m"}, name.Name)
}

// NoInit reports init functions: what happens at start-up happens in main.
func NoInit(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.production() {
		for _, decl := range f.Go.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				findings = append(findings, Finding{f.Path, t.line(fn.Pos()), "has an init function: do it in main, or when it is asked for"})
			}
		}
	}
	return findings
}
