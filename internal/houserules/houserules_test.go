package houserules

import (
	"fmt"
	"strings"
	"testing"
)

// rules are all house rules by name.
var rules = []struct {
	name  string
	check func(*Tree) []Finding
}{
	{"layers point down", LayersPointDown},
	{"strangers stay strangers", StrangersStayStrangers},
	{"guests need nothing", GuestsNeedNothing},
	{"dependencies have reasons", DependenciesHaveReasons},
	{"cores are pure", CoresArePure},
	{"packages explain themselves", PackagesExplainThemselves},
	{"names say what is inside", NamesSayWhatIsInside},
	{"files are chapters", FilesAreChapters},
	{"nothing generated is committed", NothingGeneratedIsCommitted},
	{"tests run", TestsRun},
	{"no init", NoInit},
	{"keys are read", KeysAreRead},
}

func TestTheRepositoryKeepsItsRules(t *testing.T) {
	tree, err := ReadTree("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.production()) < 20 {
		t.Fatalf("read only %d Go files: not the repository", len(tree.production()))
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, finding := range rule.check(tree) {
				t.Error(finding)
			}
		})
	}
}

// architecture is a page with a table of packages for the examples below.
const architecture = "# Architecture\n\n| package | idea |\n|---|---|\n| `sdk/abi` | contract |\n" +
	"| `wasmhost/module` | parse |\n| `engine/msg` | messages |\n| `engine/source`, `engine/sink` | files |\n| `cmd/quern` | command line |\n"

// quern is the beginning of the project's import paths in the examples.
const quern = `"github.com/quern-project/quern/`

func TestEachRuleFindsWhatItForbids(t *testing.T) {
	type files map[string]string
	for _, c := range []struct {
		name  string
		check func(*Tree) []Finding
		files files
		want  []string // one part of each finding
	}{
		{"an import upwards", LayersPointDown,
			files{"engine/msg/a.go": "package msg\n\nimport _ " + quern + `cmd/quern"`},
			[]string{"engine/msg/a.go:3: imports cmd/quern, which is above engine/msg"}},
		{"an import upwards within a row", LayersPointDown,
			files{"engine/source/a.go": "package source\nimport _ " + quern + `engine/sink"`},
			[]string{"engine/source/a.go:2: imports engine/sink"}},
		{"an import downwards is fine", LayersPointDown,
			files{"engine/sink/a.go": "package sink\nimport _ " + quern + `sdk/abi"`}, nil},
		{"an import upwards in a test is fine", LayersPointDown,
			files{"engine/msg/a_test.go": "package msg\nimport _ " + quern + `cmd/quern"`}, nil},
		{"a package that the page does not list", LayersPointDown,
			files{"engine/new/a.go": "package new", "engine/new/b.go": "package new"},
			[]string{"engine/new: is not in the table"}},
		{"a page without a table", LayersPointDown,
			files{"docs/architecture.md": "# Architecture\n"}, []string{"has no table"}},

		{"wasmhost knows the engine", StrangersStayStrangers,
			files{"wasmhost/module/a.go": "package module\nimport _ " + quern + `engine/msg"`},
			[]string{"wasmhost/module/a.go:2: imports engine/msg: wasmhost knows nothing of engine"}},
		{"net knows the engine", StrangersStayStrangers,
			files{"net/wire/a.go": "package wire\nimport _ " + quern + `engine/msg"`},
			[]string{"net knows nothing of engine"}},
		{"the engine knows a job", StrangersStayStrangers,
			files{"engine/msg/a.go": "package msg\nimport _ " + quern + `jobs/pi"`},
			[]string{"engine knows nothing of jobs"}},

		{"the SDK imports a module", GuestsNeedNothing,
			files{"sdk/quern/a.go": "package quern\nimport _ \"github.com/fxamacker/cbor/v2\""},
			[]string{"sdk/quern/a.go:2: imports github.com/fxamacker/cbor/v2"}},
		{"the SDK imports the engine", GuestsNeedNothing,
			files{"sdk/quern/a.go": "package quern\nimport _ " + quern + `engine/msg"`},
			[]string{"imports github.com/quern-project/quern/engine/msg"}},
		{"the SDK imports its contract", GuestsNeedNothing,
			files{"sdk/quern/a.go": "package quern\nimport (\n_ \"fmt\"\n_ " + quern + "sdk/abi\"\n)"}, nil},
		{"a job imports the engine", GuestsNeedNothing,
			files{"jobs/pi/main.go": "package main\nimport _ " + quern + `engine/msg"`}, []string{"code for guests"}},

		{"a dependency without a reason", DependenciesHaveReasons,
			files{"docs/rationale.md": "| google/go-cmp | tests |\n", "a.go": "package a\nimport _ \"github.com/google/go-cmp/cmp\"\nimport _ \"github.com/google/go-cmp2\""},
			[]string{"a.go:3: imports github.com/google/go-cmp2, which has no row"}},
		{"a reason without a dependency", DependenciesHaveReasons,
			files{"docs/rationale.md": "| module | why |\n|---|---|\n| a/b, golang.org/x/term | tests |\n", "a_test.go": "package a\nimport _ \"golang.org/x/term\"\nimport _ \"go/ast\""},
			[]string{"docs/rationale.md: gives a reason for a/b"}},

		{"a core that opens files", CoresArePure,
			files{"engine/dag/a.go": "package dag\nimport _ \"os\""}, []string{"engine/dag/a.go:2: imports os"}},
		{"a core with a random source", CoresArePure,
			files{"engine/sched/a.go": "package sched\nimport _ \"math/rand/v2\""}, []string{"imports math/rand/v2"}},
		{"a core that locks", CoresArePure,
			files{"engine/graph/a.go": "package graph\nimport _ \"sync\""}, []string{"imports sync"}},
		{"a core that reads the clock", CoresArePure,
			files{"engine/dag/a.go": "package dag\nimport \"time\"\nvar x = time.Now()"}, []string{"uses the clock (time.Now)"}},
		{"a core with durations is fine", CoresArePure,
			files{"engine/dag/a.go": "package dag\nimport \"time\"\nconst x = 3 * time.Second"}, nil},
		{"a core that starts a goroutine", CoresArePure,
			files{"wasmhost/module/a.go": "package module\nfunc f() { go f() }"}, []string{"starts a goroutine"}},
		{"a core with channels", CoresArePure,
			files{"engine/sched/a.go": "package sched\nfunc f(c chan int) { select {} }"},
			[]string{"has a channel", "waits for channels"}},
		{"a test of a core may do anything", CoresArePure,
			files{"engine/dag/a_test.go": "package dag\nimport _ \"os\""}, nil},

		{"no package comment", PackagesExplainThemselves,
			files{"engine/msg/a.go": "package msg", "engine/msg/b.go": "// Something else.\npackage msg"},
			[]string{`engine/msg: has no package comment that begins with "Package msg"`}},
		{"a command without a comment", PackagesExplainThemselves,
			files{"jobs/pi/main.go": "package main"}, []string{`"Command NAME"`}},
		{"one package comment is enough", PackagesExplainThemselves,
			files{"engine/msg/a.go": "package msg", "engine/msg/b.go": "// Package msg is data.\npackage msg"}, nil},

		{"a file called helpers", NamesSayWhatIsInside, files{"engine/msg/helpers.go": "package msg"},
			[]string{"engine/msg/helpers.go: is named after nothing"}},
		{"a test called types", NamesSayWhatIsInside, files{"engine/msg/types_test.go": "package msg"},
			[]string{"is named after nothing"}},
		{"a folder called util", NamesSayWhatIsInside, files{"engine/util/strings.go": "package util"},
			[]string{"lies in a folder"}},

		{"a long file", FilesAreChapters,
			files{"a.go": "package a\n" + strings.Repeat("//\n", maxLines)}, []string{"has 701 lines"}},
		{"a long test is fine", FilesAreChapters,
			files{"a_test.go": "package a\n" + strings.Repeat("//\n", maxLines)}, nil},

		{"a module", NothingGeneratedIsCommitted, files{"jobs/pi/pi.wasm": "\x00asm"}, []string{"is generated"}},
		{"a large file", NothingGeneratedIsCommitted,
			files{"docs/big.txt": strings.Repeat("x", maxFileSize+1)}, []string{"has 1048577 bytes"}},

		{"a test that skips", TestsRun,
			files{"a_test.go": "package a\nfunc TestA(t *testing.T) {\n\tt.Skip()\n}\nfunc FuzzA(f *testing.F) { f.Skipf(\"\") }"},
			[]string{"a_test.go:3: skips", "a_test.go:5: skips"}},
		{"something else that skips is fine", TestsRun,
			files{"a_test.go": "package a\nfunc TestA(t *testing.T) { reader.Skip(3) }"}, nil},
		{"a script that skips", TestsRun,
			files{"testdata/a.txtar": "exec true\n[windows] skip 'not here'\nskip\n-- file --\nskip\n"},
			[]string{"testdata/a.txtar:2: skips", "testdata/a.txtar:3: skips"}},

		{"an init function", NoInit, files{"a.go": "package a\nfunc init() {}"}, []string{"a.go:2: has an init function"}},
		{"a key that nothing reads", KeysAreRead,
			files{keysFile: "package conf\nvar (\n\tA = intKey(\"quern.a.b\", 1)\n\tB = limit(sizeKey(\"quern.b\", 1)).atLaunch()\n\tC = intKey(abi.KeyC, 1)\n\tD = intKey(abi.KeyD, 1)\n)",
				keyNamesFile:      "package abi\nconst (\n\tKeyC = \"quern.c\"\n\tKeyD = \"quern.d\"\n)",
				"engine/dag/a.go": "package dag\nvar x = conf.A.Get(c)",
				"engine/dag/b.go": "package dag\nvar x = conf.C.Name()", "sdk/quern/a.go": "package quern\nvar x = read(abi.KeyD)",
				"engine/dag/a_test.go": "package dag\nvar x = conf.B.Get(c)"},
			[]string{"engine/conf/keys.go:4: nothing reads quern.b (B)", "engine/conf/keys.go:5: nothing reads quern.c (C)"}},
		{"a key that is written out", KeysAreUsedByVariable,
			files{keysFile: "package conf\nvar A = intKey(\"quern.a.b\", 1)", "engine/dag/a.go": "package dag\nvar x = `raise quern.a.b, not quern.a`\n// quern.a.b\n",
				"engine/dag/a_test.go": "package dag\nvar x = \"quern.a.b\"", "jobs/pi/main.go": "package main\nvar x = \"quern.a.b\""},
			[]string{"engine/dag/a.go:2: writes quern.a.b out"}},

		{"a test that sleeps", TestsDoNotSleep,
			files{"a_test.go": "package a\nfunc f() {\n\ttime.Sleep(1)\n\t<-time.After(1)\n\ttime.Now()\n}", "a.go": "package a\nfunc f() { time.Sleep(1) }"},
			[]string{"a_test.go:3: calls time.Sleep", "a_test.go:4: calls time.After"}},

		{"a method called init is fine", NoInit, files{"a.go": "package a\ntype T int\nfunc (T) init() {}"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, ok := c.files["docs/architecture.md"]; !ok {
				c.files["docs/architecture.md"] = architecture
			}
			tree, err := NewTree(c.files)
			if err != nil {
				t.Fatal(err)
			}
			findings := c.check(tree)
			if len(findings) != len(c.want) {
				t.Fatalf("findings %v, want %d", findings, len(c.want))
			}
			for i, want := range c.want {
				if got := fmt.Sprint(findings[i]); !strings.Contains(got, want) {
					t.Errorf("finding %q, want one with %q", got, want)
				}
			}
		})
	}
}

func TestLayersAreReadFromThePage(t *testing.T) {
	tree, err := NewTree(map[string]string{"docs/architecture.md": architecture})
	if err != nil {
		t.Fatal(err)
	}
	want := "[sdk/abi wasmhost/module engine/msg engine/source engine/sink cmd/quern]"
	if got := fmt.Sprint(Layers(tree)); got != want {
		t.Errorf("layers %s, want %s", got, want)
	}
}
