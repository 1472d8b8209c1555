package conf

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quern-project/quern/sdk/abi"
	"pgregory.net/rapid"
)

func TestDefaults(t *testing.T) {
	c := New()
	if got := TaskMaxFailures.Get(c); got != 4 {
		t.Errorf("quern.task.maxFailures = %d, want 4", got)
	}
	if got := TaskMemory.Get(c); got != 512*MiB {
		t.Errorf("quern.task.memory = %v, want 512m", got)
	}
	if got := DefaultParallelism.Get(c); got != 8 {
		t.Errorf("quern.default.parallelism = %d, want 8", got)
	}
	if got := CompileCPU.Get(c); got != 30*time.Second {
		t.Errorf("quern.compile.cpu = %v, want 30s", got)
	}
	if got := LocalDir.Get(c); got != os.TempDir() {
		t.Errorf("quern.local.dir = %q, want the temporary folder", got)
	}
	if Seed.Get(c) == Seed.Get(New()) {
		t.Error("two launches drew the same seed")
	}
	if Seed.IsSet(c) {
		t.Error("the drawn seed counts as set")
	}
}

func TestTheStrongerSourceHolds(t *testing.T) {
	setting := func(s Source) Setting {
		return DefaultParallelism.Set([]string{"", "11", "12", "13", "14"}[s], s, "")
	}
	all := []Setting{setting(FromEnvironment), setting(FromFile), setting(FromFlag), setting(FromJob)}
	for n := 1; n <= len(all); n++ {
		want := 10 + n
		rapid.Check(t, func(t *rapid.T) {
			c, err := New().With(rapid.Permutation(all[:n]).Draw(t, "settings"))
			if err != nil {
				t.Fatal(err)
			}
			if got := DefaultParallelism.Get(c); got != want {
				t.Fatalf("with sources up to %v: %d, want %d", Source(n), got, want)
			}
		})
	}
}

func TestTheLaterSettingOfOneSourceHolds(t *testing.T) {
	c, err := New().With([]Setting{
		TaskMemory.Set("1g", FromFlag, "--conf"), TaskMemory.Set("64m", FromFlag, "--task-memory"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := TaskMemory.Get(c); got != 64*MiB {
		t.Errorf("got %v, want 64m", got)
	}
}

func TestWithLeavesTheReceiverAlone(t *testing.T) {
	c := New()
	if _, err := c.With([]Setting{TaskMaxFailures.Set("9", FromFlag, "--conf")}); err != nil {
		t.Fatal(err)
	}
	if got := TaskMaxFailures.Get(c); got != 4 {
		t.Errorf("got %d, want the 4 of before", got)
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	_, err := New().With(
		[]Setting{{Key: "quern.executor.memroy", Value: "1g", Source: FromFile, Origin: "q.conf:3"}},
		[]Setting{TaskMemory.Set("5g", FromFlag, "--task-memory"), {Key: "quern.seed", Value: "-1", Source: FromFlag}},
		JobSettings(map[string]string{"quern.local.dir": "/etc", "quern.shuffle.compress": "yes"}),
		FromEnviron([]string{"QUERN_TASK_MAX_FALIURES=3", "PATH=/bin", "QUERN_MASTER="}),
	)
	want := `configuration: unknown key quern.executor.memroy (from q.conf:3); did you mean quern.executor.memory?
configuration: quern.task.memory = "5g" (from --task-memory): too large; allowed is a size from 1m to 4g, such as 512m
configuration: quern.seed = "-1" (from flag): not a whole number; allowed is a whole number from 0 to 18446744073709551615
configuration: quern.local.dir cannot be set by the job; set it at launch, as in --conf quern.local.dir=/etc
configuration: quern.shuffle.compress = "yes" (from the job): neither true nor false; allowed is true or false
configuration: unknown key quern.task.max.faliures (from QUERN_TASK_MAX_FALIURES); did you mean QUERN_TASK_MAX_FAILURES?`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if e, ok := errors.AsType[*UnknownKeyError](err); !ok || e.Nearest != "quern.executor.memory" {
		t.Errorf("no UnknownKeyError with the nearest key in %#v", err)
	}
}

func TestJobsCanOnlyLowerWhatIsCapped(t *testing.T) {
	launch, err := New().With([]Setting{TaskMemory.Set("256m", FromFlag, "--task-memory")})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ key, value, limit string }{
		{"quern.task.memory", "256m", ""},
		{"quern.task.memory", "64m", ""},
		{"quern.task.memory", "257m", "256m"},
		{"quern.executor.memory", "512m", ""},
		{"quern.executor.memory", "1025m", "1g"},
		{"quern.driver.maxResultSize", "1g", ""},
		{"quern.driver.maxResultSize", "0", "1g"},
	} {
		_, err := launch.With(JobSettings(map[string]string{test.key: test.value}))
		if test.limit == "" {
			if err != nil {
				t.Errorf("%s = %s: %v", test.key, test.value, err)
			}
			continue
		}
		if e, ok := errors.AsType[*CappedError](err); !ok || e.Limit != test.limit {
			t.Errorf("%s = %s: %v, want a CappedError with the limit %s", test.key, test.value, err, test.limit)
		}
	}
	unlimited, err := launch.With([]Setting{DriverMaxResultSize.Set("0", FromFlag, "--conf")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unlimited.With(JobSettings(map[string]string{"quern.driver.maxResultSize": "2g"})); err != nil {
		t.Errorf("a limit where there was none: %v", err)
	}
}

func TestJobsCannotDecideWhereAndHowOftenTheyRun(t *testing.T) {
	for key, value := range map[string]string{
		"quern.master": "local[64,100]", "quern.task.maxFailures": "100", "quern.stage.maxConsecutiveAttempts": "100",
	} {
		_, err := New().With(JobSettings(map[string]string{key: value}))
		if _, ok := errors.AsType[*LaunchOnlyError](err); !ok {
			t.Errorf("%s = %s, set by the job: %v, want a LaunchOnlyError", key, value, err)
		}
	}
}

func TestUnknownKeysSuggestTheNearest(t *testing.T) {
	for unknown, want := range map[string]string{
		"spark.executor.memory":    "quern.executor.memory",
		"executor.memory":          "quern.executor.memory",
		"quern.task.maxfailures":   "quern.task.maxFailures",
		"quern.shuffle.comperss":   "quern.shuffle.compress",
		"quern.sed":                "quern.seed",
		"com.example.unrelated.it": "",
	} {
		if got := nearest(unknown); got != want {
			t.Errorf("nearest to %s: %q, want %q", unknown, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		key, value, want string // want is a part of the error, "" for none
	}{
		{"quern.task.memory", "256m", ""},
		{"quern.task.memory", "256MB", ""},
		{"quern.task.memory", "268435456", ""},
		{"quern.task.memory", " 1g ", ""},
		{"quern.task.memory", "4g", ""},
		{"quern.task.memory", "0.5g", "a fraction; use a smaller unit"},
		{"quern.task.memory", "-1g", "negative"},
		{"quern.task.memory", "g", "not a size"},
		{"quern.task.memory", "", "not a size"},
		{"quern.task.memory", "1x", `"x" is no unit of size`},
		{"quern.task.memory", "10", "too small"},
		{"quern.executor.memory", "99999999t", "too large"},
		{"quern.executor.memory", "99999999999999999999", "too large"},
		{"quern.driver.maxResultSize", "0", ""},
		{"quern.compile.cpu", "1500ms", ""},
		{"quern.compile.cpu", "2min", ""},
		{"quern.compile.cpu", "10", "no unit"},
		{"quern.compile.cpu", "10w", `"w" is no unit of time`},
		{"quern.compile.cpu", "1ms", "too small"},
		{"quern.task.maxFailures", "0", "too small"},
		{"quern.task.maxFailures", "many", "not a whole number"},
		{"quern.task.maxFailures", "99999999999999999999", "out of range"},
		{"quern.seed", "18446744073709551615", ""},
		{"quern.seed", "18446744073709551616", "out of range"},
		{"quern.test.failTasks", "0.25", ""},
		{"quern.test.failTasks", "1.5", "too large"},
		{"quern.test.failTasks", "NaN", "not a number"},
		{"quern.shuffle.compress", "False", ""},
		{"quern.shuffle.compression.codec", "zstd", ""},
		{"quern.shuffle.compression.codec", "lz4", "allowed is s2, zstd"},
		{"quern.shuffle.compression.codec", "ZSTD", ""},
		{"quern.app.name", "word count", ""},
		{"quern.app.name", "word\x1b[31m", "a control character"},
		{"quern.local.dir", "a\x00b", "a zero byte"},
		{"quern.master", "local[2,4]", ""},
		{"quern.master", "yarn", "no such master; allowed is local"},
	} {
		_, err := New().With([]Setting{{Key: c.key, Value: c.value, Source: FromFlag}})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s = %q: %v", c.key, c.value, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s = %q: error %v, want one with %q", c.key, c.value, err, c.want)
		}
	}
}

func TestSizesPrintAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Min(0).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "round") {
			b = b >> 40 << rapid.IntRange(0, 40).Draw(t, "shift")
		}
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Fatalf("%d prints as %s and reads as %d (%v)", int64(b), b, int64(got), err)
		}
	})
}

func TestPrintedConfigurationReadsBack(t *testing.T) {
	c, err := New().With(
		[]Setting{AppName.Set("word count = fun", FromFlag, "--name"), TaskMemory.Set("1g", FromFile, "q.conf:1")})
	if err != nil {
		t.Fatal(err)
	}
	text := c.String()
	for _, want := range []string{
		"# from --name\nquern.app.name = word count = fun\n",
		"# from q.conf:1\nquern.task.memory = 1g\n",
		"\nquern.executor.memory = 1g\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	settings, err := ParseProperties([]byte(text), "printed")
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := ParseProperties([]byte(New().String()), "defaults")
	if err != nil {
		t.Errorf("the defaults do not read back: %v", err)
	}
	if _, err := New().With(defaults); err != nil {
		t.Errorf("the defaults do not read back: %v", err)
	}
	again, err := New().With(settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Settings() {
		if got, ok := again.Lookup(s.Key); !ok || got != s.Value {
			t.Errorf("%s reads back as %q, want %q", s.Key, got, s.Value)
		}
	}
}

func TestEveryKeyHasAnEnvironmentVariableOfItsOwn(t *testing.T) {
	owner := make(map[string]string)
	for _, k := range keys() {
		name := EnvironmentName(k.name)
		if other, taken := owner[name]; taken {
			t.Errorf("%s and %s share %s", k.name, other, name)
		}
		owner[name] = k.name
		got := FromEnviron([]string{name + "=x=y"})
		want := []Setting{{Key: k.name, Value: "x=y", Source: FromEnvironment, Origin: name}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for key, want := range map[string]string{
		"quern.executor.memory":           "QUERN_EXECUTOR_MEMORY",
		"quern.task.maxFailures":          "QUERN_TASK_MAX_FAILURES",
		"quern.files.maxPartitionBytes":   "QUERN_FILES_MAX_PARTITION_BYTES",
		"quern.sandbox.safepointInterval": "QUERN_SANDBOX_SAFEPOINT_INTERVAL",
	} {
		if owner[want] != key {
			t.Errorf("%s belongs to %q, want %s", want, owner[want], key)
		}
	}
}

// The table in keys.go repeats the names of the variables; none may be missing.
func TestEveryDeclaredKeyIsInTheTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok && strings.HasSuffix(f.Name, "Key") {
				switch name := call.Args[0].(type) {
				case *ast.BasicLit:
					declared = append(declared, strings.Trim(name.Value, `"`))
				case *ast.SelectorExpr: // a name that the SDK shares
					declared = append(declared, map[string]string{
						"KeyDefaultParallelism": abi.KeyDefaultParallelism, "KeyTaskMemory": abi.KeyTaskMemory,
					}[name.Sel.Name])
				}
			}
		}
		return true
	})
	if len(declared) < 20 {
		t.Fatalf("found only the declarations of %v", declared)
	}
	var inTable []string
	for _, k := range keys() {
		inTable = append(inTable, k.name)
	}
	slices.Sort(declared)
	slices.Sort(inTable)
	if diff := cmp.Diff(declared, inTable); diff != "" {
		t.Errorf("declared and in the table (-declared +table):\n%s", diff)
	}
}

func TestAssignments(t *testing.T) {
	got, err := ParseAssignment("quern.app.name = a=b", "--conf")
	want := Setting{Key: "quern.app.name", Value: "a=b", Source: FromFlag, Origin: "--conf"}
	if err != nil || got != want {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	for _, bad := range []string{"", "quern.app.name", "=x", " = x"} {
		if _, err := ParseAssignment(bad, "--conf"); err == nil || !strings.Contains(err.Error(), "want KEY=VALUE") {
			t.Errorf("%q: error %v, want one that says what is wanted", bad, err)
		}
	}
}

var update = flag.Bool("update", false, "write docs/configuration.md anew")

func TestDocumentation(t *testing.T) {
	const path = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Markdown(), string(got)); diff != "" {
		t.Errorf("%s is not what the declarations say; run go test ./engine/conf -run TestDocumentation -update\n%s",
			path, diff)
	}
}
