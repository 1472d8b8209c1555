package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/quern-project/quern/internal/units"
	"github.com/quern-project/quern/wasmhost/module"
)

// ModuleError says why a module cannot be run. It is the module's fault.
type ModuleError struct{ Reason error }

func (e *ModuleError) Error() string { return e.Reason.Error() }
func (e *ModuleError) Unwrap() error { return e.Reason }

// CompileLimitError says that compiling a module took too much.
type CompileLimitError struct {
	CPU    time.Duration // the limit that was reached, or 0
	Memory int64         // the limit that was reached in bytes, or 0
}

func (e *CompileLimitError) Error() string {
	what := fmt.Sprintf("%v of processor time", e.CPU)
	if e.Memory > 0 {
		what = units.Bytes(e.Memory) + " of memory"
	}
	return "compiling the module took more than " + what + ": it is too large, or made to be expensive"
}

// DiskFullError says that there is no room for a compiled program.
type DiskFullError struct {
	Dir string // where it was to be kept; a folder for temporary files if there is no cache
}

func (e *DiskFullError) Error() string {
	return "the disk is full on which compiled programs are kept, in " + e.Dir
}

func diskIsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// compile is the one place where machine code is made. workers is how many
// functions are compiled at a time; more take more memory.
func compile(ctx context.Context, r wazero.Runtime, wasm []byte, workers int) (_ wazero.CompiledModule, err error) {
	defer func() {
		// A compiler that fails on an input that it should have refused must not
		// take the process with it. (It does with several workers; that is one
		// reason for the child process.)
		p := recover()
		if e, ok := p.(error); ok && errors.Is(e, syscall.ENOMEM) { // from a mapping for the code
			err = e
		} else if p != nil {
			err = &ModuleError{fmt.Errorf("the module cannot be compiled: %v", p)}
		}
	}()
	c, err := r.CompileModule(experimental.WithCompilationWorkers(ctx, workers), wasm)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // wazero writes the code to its cache
		return nil, err
	}
	if err != nil {
		return nil, &ModuleError{errors.New("the module is not valid: " + strings.ReplaceAll(err.Error(), "\n\t", ", "))}
	}
	return c, nil
}

// What lies in a cache entry.
const (
	fileShell = "module.wasm" // see shell
	fileMeta  = "meta.json"   // see meta
	dirCode   = "code"        // wazero's cache, with one file
)

// meta is what is known of a program besides its code.
type meta struct {
	Globals []string // export names
	Start   string   // export name, or ""
	Added   int      // the first function that the module did not have itself
}

func metaOf(p *module.Prepared) meta { return meta{Globals: p.Globals, Start: p.Start, Added: p.Added} }

// compileRequest is a compilation: of wasm, into a new folder.
type compileRequest struct {
	Dir     string
	Options module.Options
	Workers int
	CPU     time.Duration
	Memory  int64
}

// compileEntry writes the files of a cache entry to req.Dir.
func compileEntry(ctx context.Context, req compileRequest, wasm []byte) error {
	prepared, err := module.Prepare(wasm, req.Options)
	if err != nil {
		return &ModuleError{Reason: err}
	}
	light, err := shell(prepared.Code)
	if err != nil {
		return err
	}
	// The machine code is made twice, for the module and for its shell, to learn
	// the name that wazero gives the latter's; then the former's takes its place.
	full := filepath.Join(req.Dir, "full")
	from, err := compileTo(ctx, full, prepared.Code, req.Workers)
	if err != nil {
		return err
	}
	to, err := compileTo(ctx, filepath.Join(req.Dir, dirCode), light, req.Workers)
	if err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := os.RemoveAll(full); err != nil {
		return err
	}
	text, err := json.Marshal(metaOf(prepared))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(req.Dir, fileMeta), text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(req.Dir, fileShell), light, 0o600)
}

// compileTo compiles wasm into the new folder dir and answers the file.
func compileTo(ctx context.Context, dir string, wasm []byte, workers int) (file string, err error) {
	code, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return "", err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(code))
	defer func() { err = errors.Join(err, r.Close(ctx), code.Close(ctx)) }()
	if _, err := compile(ctx, r, wasm, workers); err != nil {
		return "", err
	}
	files, err := codeFiles(dir)
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("compile into %s: wazero wrote %d files instead of one", dir, len(files))
	}
	return files[0], nil
}

// codeFiles are the files of a wazero cache.
func codeFiles(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*", "*")) }

// compileReply is what the child says.
type compileReply struct {
	Done   bool
	Module bool // the module's fault
	CPU    bool // the limit of processor time was reached
	Memory bool // the limit of memory was reached
	Full   bool // the disk is
	Text   string
}

// CompileChild is the whole of the child process of Options.Compiler: it obeys
// what it reads from stdin, answers on stdout, and returns the exit code.
func CompileChild(stdin io.Reader, stdout io.Writer) int {
	reply := compileReply{Done: true}
	if err := compileChild(stdin, func() { answer(stdout, compileReply{CPU: true}) }); err != nil {
		var m *ModuleError
		reply = compileReply{
			Module: errors.As(err, &m), Full: diskIsFull(err), Memory: errors.Is(err, syscall.ENOMEM), Text: err.Error(),
		}
	}
	if err := answer(stdout, reply); err != nil {
		return 1
	}
	return 0
}

func answer(w io.Writer, r compileReply) error { return json.NewEncoder(w).Encode(r) }

func compileChild(stdin io.Reader, outOfTime func()) error {
	var size uint32
	if err := binary.Read(stdin, binary.LittleEndian, &size); err != nil {
		return fmt.Errorf("read the request: %w (this command is internal)", err)
	}
	var req compileRequest
	if err := json.NewDecoder(io.LimitReader(stdin, int64(size))).Decode(&req); err != nil {
		return fmt.Errorf("read the request: %w (this command is internal)", err)
	}
	if req.Dir == "" || req.CPU <= 0 || req.Memory <= 0 {
		return errors.New("the request is incomplete (this command is internal)")
	}
	// Collect little while there is room, and much before the limit kills.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(req.Memory / 4 * 3)
	if err := limitProcess(req.CPU, req.Memory, outOfTime); err != nil {
		return fmt.Errorf("limit the compiling process: %w", err)
	}
	wasm, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	return compileEntry(context.Background(), req, wasm)
}

// compileInChild does what compileEntry does in a process of its own.
func (h *Host) compileInChild(ctx context.Context, req compileRequest, wasm []byte) error {
	header, err := json.Marshal(req)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(header)))
	if !limitsProcess {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.CPU, &CompileLimitError{CPU: req.CPU})
		defer cancel()
	}
	argv := h.opts.Compiler
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = io.MultiReader(bytes.NewReader(size), bytes.NewReader(header), bytes.NewReader(wasm))
	cmd.Env = []string{fmt.Sprint("GOMAXPROCS=", min(req.Workers, runtime.GOMAXPROCS(0))), "GOTRACEBACK=none"}
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = runChild(cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var reply compileReply
	// The last line counts: a second reply can follow when time runs out just as
	// the work is done.
	lines := bytes.Split(bytes.TrimSpace(stdout.Bytes()), []byte("\n"))
	decoded := json.Unmarshal(lines[len(lines)-1], &reply) == nil
	switch used := cmd.ProcessState; {
	case decoded && reply.Done && err == nil:
		return nil
	case decoded && reply.CPU, used != nil && used.UserTime()+used.SystemTime() >= req.CPU:
		return &CompileLimitError{CPU: req.CPU}
	case decoded && reply.Memory:
		return &CompileLimitError{Memory: req.Memory}
	case decoded && reply.Full:
		return syscall.ENOSPC
	case decoded && reply.Module:
		return &ModuleError{errors.New(reply.Text)}
	case decoded && reply.Text != "":
		return errors.New(reply.Text)
	case outOfMemory(stderr.String()):
		return &CompileLimitError{Memory: req.Memory}
	case strings.HasPrefix(stderr.String(), "panic: "):
		line, _, _ := strings.Cut(strings.TrimPrefix(stderr.String(), "panic: "), "\n")
		return &ModuleError{fmt.Errorf("the module cannot be compiled: %s", line)}
	default:
		line, _, _ := strings.Cut(stderr.String(), "\n")
		return fmt.Errorf("the compiling process %q failed: %v: %s", argv[0], err, line)
	}
}

// outOfMemory recognises how the Go runtime dies when it gets no more memory.
func outOfMemory(stderr string) bool {
	for _, s := range []string{"out of memory", "cannot allocate", "cannot map pages", "errno=12", "failed to create new OS thread", "pthread_create failed",
		"failed to allocate" /* the race detector */} {
		if strings.Contains(stderr, s) {
			return true
		}
	}
	return false
}
