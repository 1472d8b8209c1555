package sandbox

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/quern-project/quern/wasmhost/module"
)

// The cache is a folder with one folder an entry, named after a hash of all that
// determines its content. Whoever can write to it decides what this process
// executes. So it must be private to the user, and each entry carries an
// authentication code under a secret that lies outside all entries: an entry that
// was damaged, or copied in from elsewhere, is noticed and made anew.
type cache struct {
	dir    string
	size   int64 // bytes above which the oldest entries go
	secret []byte
}

const (
	fileSecret = "secret"
	fileMAC    = "mac"
	tempPrefix = "tmp-"
	secretSize = 32
	// abandoned is the age at which a folder of an unfinished compilation is
	// removed: its process has crashed.
	abandoned = 24 * time.Hour
)

// openCache makes or opens the cache in dir.
func openCache(dir string, size int64) (*cache, error) {
	c := &cache{dir: dir, size: size}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the cache of compiled programs: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil {
		err = checkPrivate(dir, info, 0o700)
	}
	if err == nil {
		c.secret, err = openSecret(filepath.Join(dir, fileSecret))
	}
	if err != nil {
		return nil, fmt.Errorf("open the cache of compiled programs: %w", err)
	}
	return c, nil
}

// openSecret reads the secret, and makes it first if there is none. Of several
// processes that do so at once, one wins and all read the same.
func openSecret(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeSecret(path); err != nil {
			return nil, err
		}
		info, err = os.Lstat(path)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	if err := checkPrivate(path, info, 0o600); err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(secret) != secretSize {
		return nil, fmt.Errorf("%s has %d bytes instead of %d: remove it", path, len(secret), secretSize)
	}
	return secret, nil
}

func makeSecret(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), fileSecret+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	secret := make([]byte, secretSize)
	rand.Read(secret)
	_, err = f.Write(secret)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// key names the entry of a module: a hash of it and of all that decides what is
// made of it.
func (h *Host) key(wasm []byte) (string, error) {
	identity, err := json.Marshal(struct {
		OS, Arch, Wazero, Executable string
		Options                      module.Options
	}{runtime.GOOS, runtime.GOARCH, wazeroVersion(), executable(), h.prepare})
	if err != nil {
		return "", err
	}
	s := sha256.New()
	fmt.Fprintf(s, "%d %s", len(identity), identity)
	s.Write(wasm)
	return hex.EncodeToString(s.Sum(nil)), nil
}

func wazeroVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				return d.Version
			}
		}
	}
	return ""
}

// executable tells builds of this program apart, so that a changed rewriter never
// meets code that an earlier one made.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// loadEntry loads a program from the cache, into which it compiles it first if
// need be.
func (h *Host) loadEntry(ctx context.Context, wasm []byte) (*Program, error) {
	key, err := h.key(wasm)
	if err != nil {
		return nil, fmt.Errorf("load the program: %w", err)
	}
	if h.cache != nil {
		dir := filepath.Join(h.cache.dir, key)
		p, err := h.openEntry(ctx, dir, key)
		if err == nil {
			now := time.Now()
			_ = os.Chtimes(filepath.Join(dir, fileMAC), now, now) // for the eviction
			return p, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// Another process may just have evicted it.
		if _, gone := os.Lstat(dir); !errors.Is(err, errNoEntry) && gone == nil {
			h.opts.Warn(fmt.Sprintf("the cached program in %s is not used and made anew: %v", dir, err))
			if err := os.RemoveAll(dir); err != nil {
				return nil, fmt.Errorf("remove a damaged entry of the cache: %w", err)
			}
		}
	}
	return h.makeEntry(ctx, key, wasm)
}

// makeEntry compiles a program in a new folder, loads it, and publishes the folder
// in one step.
func (h *Host) makeEntry(ctx context.Context, key string, wasm []byte) (_ *Program, err error) {
	h.opts.Compiling()
	parent := os.TempDir()
	if h.cache != nil {
		parent = h.cache.dir
	}
	defer func() {
		if diskIsFull(err) {
			err = &DiskFullError{Dir: parent}
		}
	}()
	temp, err := os.MkdirTemp(parent, tempPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("compile the program: %w", err)
	}
	defer os.RemoveAll(temp)
	req := compileRequest{
		Dir: temp, Options: h.prepare, Workers: 2, CPU: h.opts.CompileCPU, Memory: h.opts.CompileMemory,
	}
	if len(h.opts.Compiler) > 0 {
		err = h.compileInChild(ctx, req, wasm)
	} else {
		req.Workers = 1
		err = compileEntry(ctx, req, wasm)
	}
	if err != nil {
		return nil, fmt.Errorf("compile the program: %w", err)
	}
	if h.cache == nil {
		return h.useEntry(ctx, temp, nil)
	}
	mac, contents, err := h.cache.authenticate(temp, key)
	if err != nil {
		return nil, fmt.Errorf("compile the program: %w", err)
	}
	if err := os.WriteFile(filepath.Join(temp, fileMAC), mac, 0o600); err != nil {
		return nil, fmt.Errorf("compile the program: %w", err)
	}
	p, err := h.useEntry(ctx, temp, contents)
	if err != nil {
		return nil, err
	}
	// Another process may have been faster; its entry is as good.
	if err := os.Rename(temp, filepath.Join(h.cache.dir, key)); err != nil && !errors.Is(err, fs.ErrExist) {
		h.opts.Warn(fmt.Sprintf("the compiled program is not kept: %v", err))
	}
	if err := h.cache.evict(key); err != nil {
		h.opts.Warn(fmt.Sprintf("the cache of compiled programs is not cleaned: %v", err))
	}
	return p, nil
}

var errNoEntry = errors.New("no such entry")

// openEntry loads the entry in dir after checking that it is authentic.
func (h *Host) openEntry(ctx context.Context, dir, key string) (*Program, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, errNoEntry
	}
	want, err := os.ReadFile(filepath.Join(dir, fileMAC))
	if err != nil {
		return nil, err
	}
	mac, contents, err := h.cache.authenticate(dir, key)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(mac, want) {
		return nil, errors.New("its authentication code is wrong: it was damaged, or not made by this user")
	}
	return h.useEntry(ctx, dir, contents)
}

// useEntry loads an entry that can be trusted. contents are its small files, as
// far as they have been read.
func (h *Host) useEntry(ctx context.Context, dir string, contents map[string][]byte) (*Program, error) {
	for _, name := range []string{fileShell, fileMeta} {
		if contents[name] != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("load a compiled program: %w", err)
		}
		if contents == nil {
			contents = make(map[string][]byte)
		}
		contents[name] = b
	}
	var m meta
	if err := json.Unmarshal(contents[fileMeta], &m); err != nil {
		return nil, fmt.Errorf("load a compiled program: %s: %w", fileMeta, err)
	}
	code, err := wazero.NewCompilationCacheWithDir(filepath.Join(dir, dirCode))
	if err != nil {
		return nil, fmt.Errorf("load a compiled program: %w", err)
	}
	p, err := h.newProgram(ctx, code, contents[fileShell], m)
	if err != nil {
		return nil, err
	}
	// If wazero did not find the machine code, it has made some of the shell, and
	// kept it beside. That happens when the processor has other features.
	if files, err := codeFiles(filepath.Join(dir, dirCode)); err != nil || len(files) != 1 {
		return nil, errors.Join(errors.New("it is for another processor"), err, p.Close(ctx))
	}
	return p, nil
}

// authenticate computes the code of the entry in dir. It also answers the content
// of the files whose content is needed.
func (c *cache) authenticate(dir, key string) (mac []byte, contents map[string][]byte, err error) {
	contents = make(map[string][]byte)
	h := hmac.New(sha256.New, c.secret)
	fmt.Fprintf(h, "%s\n", key)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == fileMAC {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		if strings.HasPrefix(name, dirCode) {
			return hashFile(h, name, path)
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(h, "%q %d\n", filepath.ToSlash(name), len(b))
		h.Write(b)
		contents[name] = b
		return err
	})
	return h.Sum(nil), contents, err
}

func hashFile(h hash.Hash, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %d\n", filepath.ToSlash(name), info.Size())
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s changes while it is read", path)
	}
	return err
}

// evict removes the entries that were not used for the longest time until the
// cache is small enough, and what crashed processes have left. keep stays.
func (c *cache) evict(keep string) error {
	type entry struct {
		path string
		used time.Time
		size int64
	}
	var entries []entry
	var total int64
	all, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, d := range all {
		if !d.IsDir() {
			continue
		}
		e := entry{path: filepath.Join(c.dir, d.Name())}
		// Other processes add and remove entries at the same time: what cannot be
		// read is not there.
		_ = filepath.WalkDir(e.path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if info, err := d.Info(); err == nil {
				if d.Type().IsRegular() {
					e.size += info.Size()
				}
				if d.Name() == fileMAC || e.used.IsZero() {
					e.used = info.ModTime()
				}
			}
			return nil
		})
		if strings.HasPrefix(d.Name(), tempPrefix) {
			if time.Since(e.used) > abandoned {
				err = errors.Join(err, os.RemoveAll(e.path))
			}
			continue
		}
		total += e.size
		if d.Name() != keep {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, e := range entries {
		if total <= c.size {
			break
		}
		err = errors.Join(err, os.RemoveAll(e.path))
		total -= e.size
	}
	return err
}
