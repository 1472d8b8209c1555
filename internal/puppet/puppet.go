// Package puppet is a guest for tests of the host's side of the ABI: it makes,
// call by call, the host calls that a test tells it to, right ones and wrong
// ones, in a real sandbox. A test writes a [Script], an ordinary function, and
// the guest behaves as if it were its own main function or task entry.
package puppet

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

//go:embed guest/puppet.c
var source []byte

// Script is what the guest does. Its result is that of the task entry.
type Script func(g *Guest) int64

// World has a program that is the puppet, and is given back at the end of the
// test.
type World struct {
	Program *sandbox.Program

	choose func(env any) Script

	mu   sync.Mutex
	runs map[*sandbox.Instance]*Guest
}

// New makes a world whose guests may call functions. choose is asked at the
// beginning of each run for its script, by the run's Env.
func New(t testing.TB, functions []sandbox.Function, choose func(env any) Script) *World {
	t.Helper()
	w := &World{choose: choose, runs: make(map[*sandbox.Instance]*Guest)}
	ctx := context.Background()
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	host, err := sandbox.New(ctx, sandbox.Options{
		StackLimit: 1 << 20,
		Functions: append(slices.Clone(functions),
			sandbox.Function{Name: "next", Params: []api.ValueType{i32}, Call: w.nextCommand},
			sandbox.Function{Name: "report", Params: []api.ValueType{i64}, Call: w.report},
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, g := range w.runs { // those that did not end by themselves
			g.stop()
		}
		if n := host.Images().Stats().Chunks; n != 0 {
			t.Errorf("%d chunks of images are left", n)
		}
		if err := host.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if w.Program, err = host.Load(ctx, build(t)); err != nil {
		t.Fatal(err)
	}
	return w
}

// build compiles the puppet.
func build(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "puppet.c"), filepath.Join(dir, "puppet.wasm")
	if err := os.WriteFile(in, source, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("clang", "--target=wasm32", "-O1", "-nostdlib", "-fno-builtin",
		"-Wl,--no-entry,--export=_start,--export="+abi.TaskExport, "-o", out, in)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the puppet: %v: %v\n%s", cmd, err, text)
	}
	code, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// Image is what tasks can be clones of: the memory of a driver that has done
// nothing yet. It is released at the end of the test.
func (w *World) Image(t testing.TB) *image.Image {
	t.Helper()
	env := new(imageEnv)
	if _, err := w.Program.Start(context.Background(), sandbox.DriverConfig{Env: env}); err != nil || env.err != nil {
		t.Fatal(err, env.err)
	}
	t.Cleanup(env.image.Release)
	return env.image
}

type imageEnv struct {
	image *image.Image
	err   error
}
