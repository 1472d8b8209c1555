package houserules

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
)

// keysFile declares every configuration key, each as a variable whose value is
// a call such as intKey("quern.task.maxFailures", ...).
const keysFile = "engine/conf/keys.go"

// keyNamesFile has the names of the keys that the SDK uses, too. The SDK cannot
// import engine/conf, so keysFile takes those names from there.
const keyNamesFile = "sdk/abi/settings.go"

// settingName matches the names of configuration keys in a text.
var settingName = regexp.MustCompile(`\bquern(\.[a-z][A-Za-z]*)+\b`)

// declaredKey is a variable of keysFile.
type declaredKey struct {
	variable, name string
	constant       string // of keyNamesFile, "" if the name is written in keysFile
	line           int
}

// declaredKeys returns the declarations of keysFile by variable, and the set of
// the keys' names.
func (t *Tree) declaredKeys() (keys []declaredKey, names map[string]bool) {
	constants := t.stringConstants(keyNamesFile)
	names = map[string]bool{}
	for _, f := range t.Files {
		if f.Path != keysFile || f.Go == nil {
			continue
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if name, constant := firstKeyName(spec.Values[0], constants); name != "" {
				keys = append(keys, declaredKey{spec.Names[0].Name, name, constant, t.line(spec.Pos())})
				names[name] = true
			}
			return false
		})
	}
	return keys, names
}

// firstKeyName returns the name of the key that an expression declares: the
// first string or constant in it that is one, and which constant that is.
func firstKeyName(e ast.Expr, constants map[string]string) (name, constant string) {
	ast.Inspect(e, func(n ast.Node) bool {
		candidate, from := "", ""
		switch n := n.(type) {
		case *ast.BasicLit:
			candidate = stringOf(n)
		case *ast.Ident:
			candidate, from = constants[n.Name], n.Name
		}
		if name == "" && candidate != "" && settingName.FindString(candidate) == candidate {
			name, constant = candidate, from
		}
		return name == ""
	})
	return name, constant
}

// stringConstants returns the constants with a string as their value that a
// file declares.
func (t *Tree) stringConstants(file string) map[string]string {
	constants := map[string]string{}
	for _, f := range t.Files {
		if f.Path != file || f.Go == nil {
			continue
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
					constants[spec.Names[0].Name] = stringOf(lit)
				}
			}
			return true
		})
	}
	return constants
}

// stringOf returns the value of a string literal, "" of any other.
func stringOf(lit *ast.BasicLit) string {
	if lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// KeysAreRead reports configuration keys whose value no production code gets,
// neither the engine through the key's variable nor the SDK by its name.
func KeysAreRead(t *Tree) []Finding {
	keys, _ := t.declaredKeys()
	read := map[string]bool{}
	for _, f := range t.production() {
		inConf := f.Dir() == path.Dir(keysFile)
		ast.Inspect(f.Go, func(n ast.Node) bool {
			get, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := get.X.(*ast.Ident); ok && pkg.Name == "abi" && below(f.Dir(), "sdk") {
				read[get.Sel.Name] = true // abi.KeyTaskMemory
			}
			if get.Sel.Name != "Get" {
				return true
			}
			switch key := get.X.(type) {
			case *ast.SelectorExpr: // conf.AppName.Get
				if pkg, ok := key.X.(*ast.Ident); ok && pkg.Name == "conf" {
					read[key.Sel.Name] = true
				}
			case *ast.Ident: // AppName.Get, in package conf itself
				if inConf {
					read[key.Name] = true
				}
			}
			return true
		})
	}
	var findings []Finding
	for _, k := range keys {
		if !read[k.variable] && !read[k.constant] {
			findings = append(findings, Finding{keysFile, k.line,
				fmt.Sprintf("nothing reads %s (%s): a setting without effect deceives its user; remove it or use it", k.name, k.variable)})
		}
	}
	return findings
}

// KeysAreUsedByVariable reports configuration keys that are written out in
// strings instead of taken from their declaration.
func KeysAreUsedByVariable(t *Tree) []Finding {
	_, names := t.declaredKeys()
	var findings []Finding
	for _, f := range t.production() {
		if f.Path == keysFile || f.Path == keyNamesFile || below(f.Dir(), "jobs") {
			continue
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				for _, name := range settingName.FindAllString(stringOf(lit), -1) {
					if names[name] {
						findings = append(findings, Finding{f.Path, t.line(lit.Pos()),
							fmt.Sprintf("writes %s out: use the key's variable and its Name", name)})
					}
				}
			}
			return true
		})
	}
	return findings
}
