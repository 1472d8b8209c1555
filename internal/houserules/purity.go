package houserules

import (
	"fmt"
	"go/ast"
	"slices"
)

// pureCores are the packages in which events go in and actions come out, with
// no goroutine, clock, socket, file or random source.
var pureCores = []string{"engine/dag", "engine/sched", "engine/graph", "wasmhost/module"}

// impureImports are packages that bring in the outside world. A root stands
// for all below it.
var impureImports = []string{
	"net", "os", "io/fs", "io/ioutil", "syscall", "math/rand", "crypto/rand", "sync", "context", "log",
	"runtime", "testing", "unsafe", "golang.org/x/sys", "golang.org/x/sync",
}

// clocks are the functions of package time that read or wait for a clock. The
// types of the package are plain data.
var clocks = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
}

// CoresArePure reports imports of the outside world, clocks, goroutines and
// channels in the pure cores.
func CoresArePure(t *Tree) []Finding {
	var findings []Finding
	for _, f := range t.production() {
		if !slices.ContainsFunc(pureCores, func(core string) bool { return below(f.Dir(), core) }) {
			continue
		}
		report := func(n ast.Node, format string, args ...any) {
			findings = append(findings, Finding{f.Path, t.line(n.Pos()),
				fmt.Sprintf(format, args...) + ", but a pure core takes events and returns actions"})
		}
		for _, spec := range f.Go.Imports {
			if p := importPath(spec); anyAbove(impureImports, p) {
				report(spec, "imports %s", p)
			}
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n, "starts a goroutine")
			case *ast.SelectStmt:
				report(n, "waits for channels")
			case *ast.ChanType:
				report(n, "has a channel")
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
					report(n, "uses the clock (time.%s)", n.Sel.Name)
				}
			}
			return true
		})
	}
	return findings
}
