package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quern-project/quern/wasmhost/module"
)

// cacheTest is a cache of its own.
type cacheTest struct {
	*testing.T
	dir      string
	warnings []string
}

func newCacheTest(t *testing.T) *cacheTest {
	return &cacheTest{T: t, dir: filepath.Join(t.TempDir(), "cache")}
}

// host opens a host on the cache.
func (c *cacheTest) host(change ...func(*Options)) (*Host, error) {
	o := Options{
		Functions: testFunctions, CacheDir: c.dir, Compiler: compiler(),
		Warn: func(s string) { c.warnings = append(c.warnings, s) },
	}
	for _, f := range change {
		f(&o)
	}
	h, err := New(context.Background(), o)
	if err == nil {
		c.Cleanup(func() { h.Close(context.Background()) })
	}
	return h, err
}

// load loads a guest, which must work, on a new host.
func (c *cacheTest) load(wasm []byte, change ...func(*Options)) {
	c.Helper()
	h, err := c.host(change...)
	if err != nil {
		c.Fatal(err)
	}
	p, err := h.Load(context.Background(), wasm)
	if err != nil {
		c.Fatal(err)
	}
	code, err := p.Start(context.Background(), DriverConfig{Args: []string{"guest", "3"}, Env: &env{act: func(*Call, int32) {}}})
	if code != 3 || err != nil {
		c.Errorf("the loaded guest ended with %d, %v", code, err)
	}
}

// files are the paths in the cache's entries.
func (c *cacheTest) files() (paths []string) {
	c.Helper()
	for _, pattern := range []string{"*/*", "*/*/*/*"} {
		found, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			c.Fatal(err)
		}
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				paths = append(paths, f)
			}
		}
	}
	return paths
}

func (c *cacheTest) entries() []string {
	c.Helper()
	dirs, err := filepath.Glob(filepath.Join(c.dir, "*", fileMAC))
	if err != nil {
		c.Fatal(err)
	}
	return dirs
}

func TestSecondLoadIsFromTheCache(t *testing.T) {
	c := newCacheTest(t)
	compiled := 0
	counted := func(o *Options) { o.Compiling = func() { compiled++ } }
	c.load(cGuest(t), counted)
	if len(c.files()) != 4 {
		t.Fatalf("an entry has the files %v", c.files())
	}
	// A compiler that cannot run shows that it is not needed.
	c.load(cGuest(t), counted, func(o *Options) { o.Compiler = []string{filepath.Join(t.TempDir(), "nothing")} })
	if len(c.warnings) > 0 {
		t.Error(c.warnings)
	}
	// Other options make another program.
	c.load(cGuest(t), counted, func(o *Options) { o.Interval = 1000 })
	if n := len(c.entries()); n != 2 || compiled != 2 {
		t.Errorf("%d entries, compiled %d times", n, compiled)
	}
}

func TestDamagedEntryIsNoticedAndMadeAnew(t *testing.T) {
	c := newCacheTest(t)
	c.load(cGuest(t))
	for i, path := range c.files() {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func() error{
			"changed":  func() error { b := bytes.Clone(good); b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
			"cut":      func() error { return os.WriteFile(path, good[:len(good)-1], 0o600) },
			"empty":    func() error { return os.WriteFile(path, nil, 0o600) },
			"removed":  func() error { return os.Remove(path) },
			"a link":   func() error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) },
			"an extra": func() error { return os.WriteFile(filepath.Join(filepath.Dir(path), "extra"), good, 0o600) },
		} {
			if i > 0 && what != "changed" && what != "a link" {
				continue // one file stands for all
			}
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			c.warnings = nil
			c.load(cGuest(t))
			if len(c.warnings) != 1 || !strings.Contains(c.warnings[0], "is not used and made anew") {
				t.Errorf("%s %s: warnings %q", filepath.Base(path), what, c.warnings)
			}
		}
	}
}

func TestPlantedEntryIsNoticed(t *testing.T) {
	entry := func(c *cacheTest) string { return filepath.Dir(c.entries()[0]) }
	plant := func(from, to string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatal(err)
		}
	}
	mine, theirs := newCacheTest(t), newCacheTest(t)
	mine.load(cGuest(t))
	theirs.load(cGuest(t))
	// Made by somebody else, under another secret.
	plant(entry(theirs), entry(mine))
	mine.load(cGuest(t))
	// Made here, but of something else.
	other := newCacheTest(t)
	other.dir = mine.dir
	name := entry(mine)
	other.load(cGuest(t), func(o *Options) { o.Interval = 1000 })
	for _, e := range other.entries() {
		if dir := filepath.Dir(e); dir != name {
			plant(dir, name)
		}
	}
	mine.load(cGuest(t))
	if len(mine.warnings) != 2 {
		t.Fatalf("%q", mine.warnings)
	}
	for _, w := range mine.warnings {
		if !strings.Contains(w, "authentication code is wrong") {
			t.Error(w)
		}
	}
}

func TestTwoProcessesCompileAtOnce(t *testing.T) {
	c := newCacheTest(t)
	var wg sync.WaitGroup
	for range 3 {
		h, err := c.host(func(o *Options) { o.Warn = func(s string) { t.Error(s) } })
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := h.Load(context.Background(), cGuest(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(c.entries()); n != 1 {
		t.Errorf("%d entries", n)
	}
	all, err := filepath.Glob(filepath.Join(c.dir, "*"))
	if err != nil || len(all) != 2 {
		t.Errorf("the cache holds %v, %v; want the secret and an entry", all, err)
	}
}

func TestCacheThatOthersCanReadIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o755, 0o770, 0o701} {
		c := newCacheTest(t)
		if err := os.Mkdir(c.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := c.host(); err == nil || !strings.Contains(err.Error(), "run chmod 700 "+c.dir) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	c := newCacheTest(t)
	c.load(cGuest(t))
	secret := filepath.Join(c.dir, fileSecret)
	if err := os.Chmod(secret, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := c.host(); err == nil || !strings.Contains(err.Error(), "run chmod 600 "+secret) {
		t.Error(err)
	}
	if err := errors.Join(os.Chmod(secret, 0o600), os.WriteFile(secret, []byte("short"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.host(); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Error(err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	c.load(cGuest(t))
	if len(c.warnings) != 1 || !strings.Contains(c.warnings[0], "authentication code is wrong") {
		t.Errorf("with a new secret: %q", c.warnings)
	}
}

func TestCacheKeepsToItsSize(t *testing.T) {
	c := newCacheTest(t)
	small := func(o *Options) { o.CacheSize = 1 }
	c.load(cGuest(t), small)
	first := c.entries()
	c.load(cGuest(t), small, func(o *Options) { o.Interval = 1000 })
	second := c.entries()
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("entries %v, then %v", first, second)
	}
	// Of several, the one that was not used for the longest time goes.
	c = newCacheTest(t)
	interval := func(n int32) func(*Options) { return func(o *Options) { o.Interval = n } }
	c.load(cGuest(t), interval(1000))
	one := c.entries()[0]
	c.load(cGuest(t), interval(2000))
	long := time.Now().Add(-time.Hour)
	for _, e := range c.entries() {
		if err := os.Chtimes(e, long, long); err != nil {
			t.Fatal(err)
		}
	}
	c.load(cGuest(t), interval(1000))
	size := int64(0)
	for _, f := range c.files() {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	c.load(cGuest(t), interval(3000), func(o *Options) { o.CacheSize = size + 1000 })
	if _, err := os.Stat(one); err != nil || len(c.entries()) != 2 {
		t.Errorf("%v; entries %v", err, c.entries())
	}
	// What a crashed process has left goes too, what a running one works on stays.
	old, young := filepath.Join(c.dir, tempPrefix+"old"), filepath.Join(c.dir, tempPrefix+"young")
	if err := errors.Join(os.Mkdir(old, 0o700), os.Mkdir(young, 0o700)); err != nil {
		t.Fatal(err)
	}
	ago := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(old, ago, ago); err != nil {
		t.Fatal(err)
	}
	c.load(cGuest(t), interval(4000))
	if _, err := os.Stat(old); err == nil {
		t.Error("an abandoned folder is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

func TestModuleThatIsNoJob(t *testing.T) {
	for _, compiler := range [][]string{compiler(), nil} {
		h, err := New(context.Background(), Options{Functions: testFunctions, Compiler: compiler})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(context.Background())
		for want, wasm := range map[string][]byte{
			"is not WebAssembly":    []byte("#!/bin/sh\necho hello\n"),
			"wasi:evil.do_anything": importing("wasi:evil", "do_anything"),
			"too many results":      bytes.Replace(starting(), body(0x41, 0, 0x10, 1, 0x1a), body(0x41, 0, 0x41, 0, 0x01), 1),
		} {
			_, err := h.Load(context.Background(), wasm)
			if _, ok := errors.AsType[*ModuleError](err); !ok || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want it to say %q", err, want)
			}
		}
	}
}

func TestCompilationIsLimited(t *testing.T) {
	load := func(change func(*Options), wasm []byte) error {
		o := Options{Functions: testFunctions, Compiler: compiler(), Limits: module.Limits{Work: 1 << 60}}
		change(&o)
		h, err := New(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(context.Background())
		_, err = h.Load(context.Background(), wasm)
		return err
	}
	err := load(func(o *Options) { o.CompileCPU = time.Second }, bomb(50, 500, 5000))
	if e, ok := errors.AsType[*CompileLimitError](err); !ok || e.CPU != time.Second {
		t.Errorf("processor time: %v", err)
	}
	err = load(func(o *Options) { o.CompileMemory = 100 << 20 }, bomb(50, 500, 5000))
	if e, ok := errors.AsType[*CompileLimitError](err); !ok || e.Memory != 100<<20 {
		t.Errorf("memory: %v", err)
	}
	err = load(func(o *Options) { o.Compiler = []string{"/bin/false"} }, bomb(1, 1, 1))
	if err == nil || !strings.Contains(err.Error(), "/bin/false") {
		t.Error(err)
	}
	if err := load(func(*Options) {}, bomb(1, 1, 1)); err != nil {
		t.Errorf("a small one of the kind: %v", err)
	}

	h, err := New(context.Background(), Options{
		Functions: testFunctions, Compiler: compiler(), Limits: module.Limits{Work: 1 << 60},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	reason := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
	if _, err := h.Load(ctx, bomb(50, 500, 5000)); !errors.Is(err, reason) {
		t.Errorf("cancelled: %v", err)
	}
}
