package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/engine/conf"
	"github.com/quern-project/quern/engine/driver"
	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/wasmhost/module"
)

func runCommand() command {
	return command{
		name:  "run",
		args:  "[flags] JOB [ARGS...]",
		short: "run a job on this machine",
		long: `Run JOB, a WebAssembly module or a folder with a Go main package, which is
built first. ARGS are the job's own: flags of quern stand before JOB.

A job may read below the current folder, and write nothing, unless
--allow-read and --allow-write say more. Standard output has the job's output
alone. The exit code is the job's own; 1 if it failed in the engine; 2 if it is
not a job or the command line is wrong; 130 after Ctrl-C, 143 after SIGTERM.`,
		files:          true,
		stopAtArgument: true,
		setup: func(flags *pflag.FlagSet) action {
			f := declareRunFlags(flags)
			return func(ctx context.Context, c *console, args []string) error {
				if len(args) == 0 {
					return usagef("wants a job: a .wasm file or a folder with a Go main package")
				}
				return run(ctx, c, flags, f, args)
			}
		},
	}
}

// runFlags are the flags of 'quern run' that are not just another way to write
// a configuration key.
type runFlags struct {
	conf           []string
	propertiesFile string
	allowRead      []string
	allowWrite     []string
	verbose        bool
	noProgress     bool
}

// keyFlags are the flags that stand for a configuration key.
func keyFlags() []struct{ flag, key, usage string } {
	return []struct{ flag, key, usage string }{
		{"master", conf.MasterURL.Name(), "where to run: `URL` is local, local[N], local[*] or local[N,F]"},
		{"name", conf.AppName.Name(), "`NAME` of the application"},
		{"task-memory", conf.TaskMemory.Name(), "limit of one task's memory, a `SIZE` such as 512m"},
		{"executor-memory", conf.ExecutorMemory.Name(), "memory that all tasks share, a `SIZE` such as 2g"},
		{"seed", conf.Seed.Name(), "the same `NUMBER` gives the same random numbers"},
	}
}

func declareRunFlags(flags *pflag.FlagSet) *runFlags {
	f := new(runFlags)
	for _, k := range keyFlags() {
		flags.String(k.flag, "", k.usage+defaultOf(k.key))
	}
	flags.StringArrayVar(&f.conf, "conf", nil, "set a configuration key, as in `KEY=VALUE`; may be repeated")
	flags.StringVar(&f.propertiesFile, "properties-file", "", "read configuration keys from `FILE`")
	flags.StringArrayVar(&f.allowRead, "allow-read", nil, "let the job read at and below `PATH`; may be repeated")
	flags.StringArrayVar(&f.allowWrite, "allow-write", nil, "let the job write at and below `PATH`; may be repeated")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the engine does")
	flags.BoolVar(&f.noProgress, "no-progress", false, "show no progress bar on a terminal")
	return f
}

// defaultOf shows a key's default in a flag's usage.
func defaultOf(key string) string {
	switch value, _ := conf.New().Lookup(key); {
	case key == conf.Seed.Name():
		return " (default: drawn at random)"
	case key == conf.AppName.Name():
		return " (default: JOB's file name)"
	default:
		return fmt.Sprintf(" (default %s)", value)
	}
}

// configuration is what flags, the properties file and the environment say.
func (f *runFlags) configuration(flags *pflag.FlagSet, environ []string) (*conf.Conf, error) {
	var fromFlags, fromFile []conf.Setting
	for _, text := range f.conf {
		s, err := conf.ParseAssignment(text, "--conf")
		if err != nil {
			return nil, usagef("%v", err)
		}
		fromFlags = append(fromFlags, s)
	}
	// A flag of its own is more explicit than --conf, so it comes later.
	for _, k := range keyFlags() {
		if flag := flags.Lookup(k.flag); flag.Changed {
			fromFlags = append(fromFlags, conf.Setting{
				Key: k.key, Value: flag.Value.String(), Source: conf.FromFlag, Origin: "--" + k.flag,
			})
		}
	}
	if f.propertiesFile != "" {
		var err error
		if fromFile, err = conf.ReadPropertiesFile(f.propertiesFile); err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	c, err := conf.New().With(conf.FromEnviron(environ), fromFile, fromFlags)
	if err != nil {
		return nil, &exitError{exitUsage, err} // it has its own hints
	}
	return c, nil
}

func run(ctx context.Context, c *console, flags *pflag.FlagSet, f *runFlags, args []string) error {
	job := args[0]
	configuration, err := f.configuration(flags, os.Environ())
	if err != nil {
		return err
	}
	path, err := filepath.Abs(job)
	if err != nil {
		return err
	}
	name := filepath.Base(path) // what the program is called, and the application, unless somebody says otherwise
	if configuration, err = withName(configuration, name); err != nil {
		return err
	}
	folder, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the current folder, below which the job may read: %w", err)
	}
	grants, err := files.New(folder, f.allowRead, f.allowWrite)
	if err != nil {
		return usagef("%v", err)
	}
	defer grants.Close()
	compiler, err := compilerCommand()
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := driver.Options{
		Args:     append([]string{name}, args[1:]...),
		Conf:     configuration,
		Files:    grants,
		Stdin:    c.in,
		Stdout:   pipeWriter{c.out, cancel},
		Stderr:   c.err,
		Compiler: compiler,
	}
	preparing := func(string) {}
	if !f.noProgress && isTerminal(c.err) && os.Getenv("TERM") != "dumb" {
		screen := newTerminal(c.err.(*os.File))
		o.Stderr = screen.writer()
		if sameFile(c.out, c.err) {
			o.Stdout = screen.writer()
		}
		bars := startProgress(screen)
		defer bars.close()
		o.Listeners = append(o.Listeners, bars)
		preparing = bars.preparing
	}
	o.Log = newLog(o.Stderr, f.verbose)
	for _, path := range f.allowRead {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			o.Log.Warn("what --allow-read names does not exist", "path", path)
		}
	}
	o.Compiling = func() { preparing("compiling " + job) }
	o.Running = func() { preparing("") }

	if o.Conf, err = withUsableCache(configuration, o.Log); err != nil {
		return err
	}
	preparing("building " + job)
	o.Wasm, err = loadJob(ctx, job, conf.CacheDir.Get(o.Conf), o.Stderr, o.Log)
	if err != nil {
		return err
	}
	if !f.verbose {
		cutter := &dumpCutter{out: o.Stderr}
		defer cutter.close()
		o.Stderr = cutter
	}
	code, err := driver.Run(ctx, o)
	var load *driver.LoadError
	switch {
	case interrupted(ctx) != nil:
		return interrupted(ctx) // whatever the job made of it
	case context.Cause(ctx) == errBrokenPipe:
		return &exitError{code: exitBrokenPipe} // nobody is there to be told
	case errors.As(err, &load):
		return notAJob(fmt.Errorf("%s: %w", job, err))
	case err != nil:
		return err
	case code != 0:
		return &exitError{code: code} // the job has said why
	}
	return nil
}

// errBrokenPipe is the cause of a context when nobody reads the job's output.
var errBrokenPipe = errors.New("standard output is closed")

// pipeWriter is a standard output that ends the run when nobody reads it, as in
// "quern run job | head".
type pipeWriter struct {
	out    io.Writer
	cancel context.CancelCauseFunc
}

func (w pipeWriter) Write(b []byte) (int, error) {
	n, err := w.out.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		w.cancel(errBrokenPipe)
	}
	return n, err
}

// withName names the application after the job's file when nobody else has.
func withName(c *conf.Conf, file string) (*conf.Conf, error) {
	if conf.AppName.IsSet(c) {
		return c, nil
	}
	return c.With([]conf.Setting{conf.AppName.Set(strings.TrimSuffix(file, ".wasm"), conf.FromDefault, "the job's file")})
}

// loadJob returns the module in a file, or builds the one in a folder.
func loadJob(ctx context.Context, job, cacheDir string, stderr io.Writer, log *slog.Logger) ([]byte, error) {
	info, err := os.Stat(job)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, notAJob(fmt.Errorf("%s does not exist", job))
	case err != nil:
		return nil, notAJob(err)
	case info.IsDir():
		return buildCached(ctx, job, cacheDir, stderr, log)
	}
	return readModule(job, info)
}

// readModule reads a module's file. A file that cannot be a module is refused
// before it is read.
func readModule(file string, info os.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, notAJob(fmt.Errorf("%s is not a regular file", file))
	}
	if limit := module.DefaultLimits().Size; info.Size() > limit {
		return nil, notAJob(fmt.Errorf("%s has %d bytes, and a module may have %d", file, info.Size(), limit))
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, notAJob(err)
	}
	if strings.HasSuffix(file, ".go") {
		return nil, notAJob(fmt.Errorf("%s is Go source: give its folder, %s", file, filepath.Dir(file)))
	}
	return wasm, nil
}
