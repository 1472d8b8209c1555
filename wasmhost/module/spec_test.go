package module

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestSpecSuite runs the WebAssembly specification's own tests, which ship
// with wazero, on the original modules and on rewritten ones. Every command
// must give the same result, trap or refusal, and the one that the
// specification asks for.
func TestSpecSuite(t *testing.T) {
	dir := filepath.Join(wazeroDir(t), "internal", "integration_test", "spectest")
	host, err := os.ReadFile(filepath.Join(dir, "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	// Most modules of the first version are those of the second, byte for byte, and
	// need no second run.
	second := map[[32]byte]bool{}
	modules, err := filepath.Glob(filepath.Join(dir, "v2", "testdata", "*.wasm"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("no modules in %s: %v", dir, err)
	}
	for _, path := range modules {
		wasm, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		second[sha256.Sum256(wasm)] = true
	}
	for _, suite := range []struct {
		version  string
		features api.CoreFeatures
		scripts  int
		known    map[[32]byte]bool
	}{
		{"v1", api.CoreFeaturesV1, 70, second},
		{"v2", api.CoreFeaturesV2, 140, nil},
	} {
		scripts, err := filepath.Glob(filepath.Join(dir, suite.version, "testdata", "*.json"))
		if err != nil || len(scripts) < suite.scripts {
			t.Fatalf("%d scripts in %s of %s (%v), want at least %d", len(scripts), suite.version, dir, err, suite.scripts)
		}
		for _, script := range scripts {
			t.Run(suite.version+"/"+strings.TrimSuffix(filepath.Base(script), ".json"), func(t *testing.T) {
				t.Parallel()
				original := specRun{engine: wazero.NewRuntimeConfigCompiler(), load: func(b []byte) ([]byte, error) { return b, nil }}
				compiled := specRun{engine: wazero.NewRuntimeConfigCompiler(), load: rewriteForSpec}
				interpreted := specRun{engine: wazero.NewRuntimeConfigInterpreter(), load: rewriteForSpec}
				interpreted.exhaust = true
				for _, r := range []*specRun{&original, &compiled, &interpreted} {
					r.engine, r.known = r.engine.WithCoreFeatures(suite.features), suite.known
					r.script(t, script, host)
				}
				// The engines may differ in the bits of NaNs, so only runs on the same one
				// are compared bit by bit.
				if diff := cmp.Diff(original.transcript, compiled.transcript); diff != "" {
					t.Errorf("original and rewritten modules differ (- original):\n%s", diff)
				}
			})
		}
	}
}

// wazeroDir is where the source of wazero is on this machine.
func wazeroDir(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("go list -m wazero: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// rewriteForSpec rewrites a module that imports no yield function. The host is
// called, so to speak, at every third safepoint.
func rewriteForSpec(wasm []byte) ([]byte, error) {
	m, err := parse(wasm, Limits{})
	if err != nil {
		return nil, err
	}
	if len(m.unsupported) > 0 {
		return nil, errors.New(m.unsupported[0])
	}
	w := rewriter{parsed: m, interval: 3, yield: ownYield}
	return w.rewrite(), nil
}

// specRun runs scripts in one engine, on modules as load gives them.
type specRun struct {
	engine     wazero.RuntimeConfig
	load       func([]byte) ([]byte, error)
	known      map[[32]byte]bool // modules about which nothing is asserted
	exhaust    bool              // whether to use up the stack, which takes the compiler seconds: see TestStackLimit of package sandbox
	transcript []string

	runtime wazero.Runtime
	modules map[string]api.Module
	last    api.Module
}

type specCommand struct {
	Type       string      `json:"type"`
	Line       int         `json:"line"`
	Name       string      `json:"name"`
	Filename   string      `json:"filename"`
	As         string      `json:"as"`
	Action     specAction  `json:"action"`
	Expected   []specValue `json:"expected"`
	ModuleType string      `json:"module_type"`
	Text       string      `json:"text"`
}

type specAction struct {
	Type   string      `json:"type"`
	Args   []specValue `json:"args"`
	Field  string      `json:"field"`
	Module string      `json:"module"`
}

type specValue struct {
	Type  string `json:"type"`
	Lane  string `json:"lane_type"`
	Value any    `json:"value"`
}

func (r *specRun) script(t *testing.T, path string, host []byte) {
	ctx := context.Background()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var script struct {
		Commands []specCommand `json:"commands"`
	}
	if err := json.Unmarshal(raw, &script); err != nil {
		t.Fatal(err)
	}
	r.runtime = wazero.NewRuntimeWithConfig(ctx, r.engine)
	defer r.runtime.Close(ctx)
	r.modules = map[string]api.Module{}
	if _, err := r.instantiate(host, "spectest"); err != nil {
		t.Fatal(err)
	}
	r.transcript = nil
	known := false // the last module
	for i, c := range script.Commands {
		wasm := func() []byte {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(path), c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		fail := func(format string, args ...any) {
			t.Errorf("line %d, %s: %s", c.Line, c.Type, fmt.Sprintf(format, args...))
		}
		if strings.HasPrefix(c.Type, "assert_") && (known && c.Filename == "" || c.Filename != "" && r.known[sha256.Sum256(wasm())]) {
			continue
		}
		if c.Type == "assert_exhaustion" {
			if r.exhaust {
				if _, _, err := r.act(c.Action); !strings.Contains(cause(err), trapText(c.Text)) {
					fail("%s: %s, want %s", c.Action.Field, cause(err), trapText(c.Text))
				}
			}
			continue
		}
		outcome := "skipped text"
		switch c.Type {
		case "module":
			name := ""
			if i+1 < len(script.Commands) && script.Commands[i+1].Type == "register" {
				name = script.Commands[i+1].As
			}
			m, err := r.instantiate(wasm(), name)
			if err != nil {
				t.Fatalf("line %d: %v", c.Line, err)
			}
			r.last, known = m, r.known[sha256.Sum256(wasm())]
			if c.Name != "" {
				r.modules[c.Name] = m
			}
			outcome = "instantiated"
		case "register":
			outcome = "registered"
		case "assert_return", "action":
			types, results, err := r.act(c.Action)
			if err != nil {
				fail("%v", err)
			} else if c.Type == "assert_return" && !matches(types, results, c.Expected) {
				fail("%s%v gave %x, want %v", c.Action.Field, c.Action.Args, results, c.Expected)
			}
			outcome = fmt.Sprintf("%x %v", results, err)
		case "assert_trap":
			_, _, err := r.act(c.Action)
			outcome = cause(err)
			if want := trapText(c.Text); !strings.Contains(outcome, want) {
				fail("%s: %s, want %s", c.Action.Field, outcome, want)
			}
		case "assert_malformed", "assert_invalid", "assert_unlinkable":
			if c.ModuleType == "text" {
				break
			}
			if _, err := r.instantiate(wasm(), ""); err == nil {
				fail("%s was accepted, want %s", c.Filename, c.Text)
			}
			outcome = "refused"
		case "assert_uninstantiable":
			_, err := r.instantiate(wasm(), "")
			// wazero lets active element segments that are out of bounds pass.
			if err == nil && c.Text != "out of bounds table access" {
				fail("%s was instantiated, want %s", c.Filename, c.Text)
			}
			outcome = cause(err)
		default:
			t.Fatalf("line %d: unknown command %q", c.Line, c.Type)
		}
		r.transcript = append(r.transcript, fmt.Sprintf("line %d, %s: %s", c.Line, c.Type, outcome))
	}
}

// instantiate does what the sandbox does: it calls the start function, if
// there is one, after instantiation.
func (r *specRun) instantiate(wasm []byte, name string) (api.Module, error) {
	ctx := context.Background()
	code, err := r.load(wasm)
	if err != nil {
		return nil, err
	}
	m, err := r.runtime.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName(name))
	if err != nil {
		return nil, err
	}
	if start := m.ExportedFunction(startName); start != nil {
		if _, err := start.Call(ctx); err != nil {
			m.Close(ctx)
			return nil, err
		}
	}
	return m, nil
}

func (r *specRun) act(a specAction) (types []api.ValueType, results []uint64, err error) {
	m := r.last
	if a.Module != "" {
		m = r.modules[a.Module]
	}
	if a.Type == "get" {
		g := m.ExportedGlobal(a.Field)
		if g == nil {
			return nil, nil, fmt.Errorf("no global %s", a.Field)
		}
		return []api.ValueType{g.Type()}, []uint64{g.Get()}, nil
	}
	f := m.ExportedFunction(a.Field)
	if f == nil {
		return nil, nil, fmt.Errorf("no function %s", a.Field)
	}
	var args []uint64
	for _, v := range a.Args {
		args = append(args, v.bits()...)
	}
	results, err = f.Call(context.Background(), args...)
	return f.Definition().ResultTypes(), results, err
}

// cause is the first line of an error, without the stack trace and without
// what wazero puts in front when it has called the start function itself.
func cause(err error) string {
	if err == nil {
		return "no error"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	if _, after, ok := strings.Cut(line, "failed: wasm error"); ok {
		line = "wasm error" + after
	}
	return line
}

// trapText is how wazero says what the specification says.
func trapText(text string) string {
	switch text {
	case "indirect call type mismatch", "indirect call":
		return "indirect call type mismatch"
	case "undefined element", "undefined", "out of bounds table access":
		return "invalid table access"
	case "call stack exhausted", "stack overflow":
		return "stack overflow"
	}
	if strings.HasPrefix(text, "uninitialized") {
		return "invalid table access"
	}
	return text
}

// lanes are the value's bits, split into lanes.
func (v specValue) lanes() (texts []string, width int) {
	kind := v.Type
	if v.Type == "v128" {
		kind = v.Lane
		for _, lane := range v.Value.([]any) {
			texts = append(texts, lane.(string))
		}
	} else if s, ok := v.Value.(string); ok {
		texts = []string{s}
	}
	switch kind {
	case "i8":
		return texts, 8
	case "i16":
		return texts, 16
	case "i32", "f32":
		return texts, 32
	}
	return texts, 64
}

// bits is the value as wazero takes it.
func (v specValue) bits() []uint64 {
	texts, width := v.lanes()
	words := make([]uint64, 1)
	if v.Type == "v128" {
		words = make([]uint64, 2)
	}
	for i, text := range texts {
		words[i*width/64] |= number(text, width, v.Type == "externref") << (i * width % 64)
	}
	return words
}

// number reads a number. References are counted from one, because nothing but
// null is zero.
func number(text string, width int, reference bool) uint64 {
	if text == "null" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, width)
	if err != nil {
		s, err := strconv.ParseInt(text, 10, width)
		if err != nil {
			panic(fmt.Sprintf("%q is not a number of %d bits", text, width))
		}
		n = uint64(s) & (1<<width - 1)
	}
	if reference {
		n++
	}
	return n
}

// matches compares results with what is expected, lane by lane.
func matches(types []api.ValueType, results []uint64, want []specValue) bool {
	if len(types) != len(want) {
		return false
	}
	for _, v := range want {
		size := 1
		if v.Type == "v128" {
			size = 2
		}
		if len(results) < size {
			return false
		}
		words := results[:size]
		results = results[size:]
		texts, width := v.lanes()
		if len(texts) == 0 {
			continue // any reference
		}
		for i, text := range texts {
			mask := uint64(1)<<(width-1)<<1 - 1
			have := words[i*width/64] >> (i * width % 64) & mask
			switch text {
			case "nan:canonical", "nan:arithmetic":
				quiet := uint64(0x7ff8) << 48
				if width == 32 {
					quiet = 0x7fc0 << 16
				}
				sign := uint64(1) << (width - 1)
				if have&quiet != quiet || text == "nan:canonical" && have&^sign != quiet {
					return false
				}
			default:
				if v.Type == "funcref" && text != "null" {
					continue
				}
				if have != number(text, width, v.Type == "externref") {
					return false
				}
			}
		}
	}
	return len(results) == 0
}
