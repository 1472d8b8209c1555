package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/quern-project/quern/wasmhost/image"
)

// guests builds each guest once per test binary.
var guests struct {
	sync.Mutex
	dir  string
	code map[string][]byte
}

func goGuest(t testing.TB) []byte {
	return guest(t, "go", func(out string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-o", out, "./testdata/goguest")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		return cmd
	})
}

func cGuest(t testing.TB) []byte {
	if _, err := exec.LookPath("clang"); err != nil {
		text, err := exec.Command("apt-get", "install", "-y", "clang", "lld", "wasi-libc", "libclang-rt-dev-wasm32").CombinedOutput()
		if err != nil {
			t.Fatalf("the guest in C needs clang, lld and wasi-libc, which cannot be installed: %v\n%s", err, text)
		}
	}
	return guest(t, "c", func(out string) *exec.Cmd {
		return exec.Command("clang", "--target=wasm32-wasi", "-O2", "-fno-builtin",
			"-o", out, "testdata/cguest/guest.c")
	})
}

func guest(t testing.TB, name string, command func(out string) *exec.Cmd) []byte {
	t.Helper()
	guests.Lock()
	defer guests.Unlock()
	if code := guests.code[name]; code != nil {
		return code
	}
	out := filepath.Join(t.TempDir(), name+".wasm")
	if err := build(command(out)); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if guests.code == nil {
		guests.code = make(map[string][]byte)
	}
	guests.code[name] = code
	return code
}

// world is one host with one program, and what its host functions do.
type world struct {
	t     testing.TB
	host  *Host
	prog  *Program
	store *image.Store

	// given back at the end of the test
	slots  []*Slot
	images []*image.Image
}

// slot makes a slot that is closed at the end of the test.
func (w *world) slot() *Slot {
	s := w.prog.NewSlot()
	w.slots = append(w.slots, s)
	return s
}

// env is Call.Env of the tests' runs.
type env struct {
	act   func(c *Call, n int32) // of the driver
	said  []string
	block chan struct{} // told when a guest blocks
}

var testFunctions = []Function{
	{Name: "act", Params: []api.ValueType{api.ValueTypeI32}, Results: []api.ValueType{api.ValueTypeI64},
		Call: func(c *Call, stack []uint64) {
			c.Env.(*env).act(c, int32(stack[0]))
			stack[0] = 0
		}},
	{Name: "emit", Params: []api.ValueType{api.ValueTypeI32, api.ValueTypeI32}, Call: func(c *Call, stack []uint64) {
		b, ok := c.Bytes(uint32(stack[0]), uint32(stack[1]))
		if !ok {
			c.Fail(fmt.Errorf("emit: bad pointer"))
		}
		e := c.Env.(*env)
		e.said = append(e.said, string(b))
	}},
	{Name: "block", Call: func(c *Call, _ []uint64) {
		if e := c.Env.(*env); e.block != nil {
			e.block <- struct{}{}
		}
		<-c.Context().Done()
	}},
	{Name: "boom", Params: []api.ValueType{api.ValueTypeI32}, Call: func(c *Call, stack []uint64) {
		switch uint32(stack[0]) {
		case 0:
			panic("boom")
		case 1:
			var m map[string]int
			m["a"] = 1
		case 2:
			panic(fmt.Errorf("boom: %w", os.ErrNotExist))
		case 3:
			c.Fail(fmt.Errorf("the host gives up: %w", os.ErrExist))
		}
	}},
}

func newWorld(t testing.TB, wasm []byte, change ...func(*Options)) *world {
	t.Helper()
	ctx := context.Background()
	store, err := image.NewStore(image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Functions: testFunctions, Images: store, CacheDir: sharedCache, Compiler: compiler(), Warn: func(s string) { t.Log(s) }}
	for _, f := range change {
		f(&o)
	}
	w := &world{t: t, store: o.Images}
	if w.host, err = New(ctx, o); err != nil {
		t.Fatal(err)
	}
	if w.prog, err = w.host.Load(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range w.slots {
			s.Close()
		}
		for _, img := range w.images {
			img.Release()
		}
		if n := w.store.Stats().Chunks; n != 0 {
			t.Errorf("%d chunks are left in the store", n)
		}
		if err := w.host.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}
