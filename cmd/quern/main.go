// Command quern runs Spark-shaped batch jobs whose user code is a WebAssembly
// module, and helps to write, build and inspect such jobs. Each subcommand is
// a file of this package; command.go has what they share.
//
// Standard output belongs to the job (or to the answer that a command was
// asked for). Progress, logs and errors go to standard error. The exit code is
// the job's own; 1 if the job failed in the engine; 2 for a wrong command line
// or a file that is not a job; 130 after Ctrl-C, 143 after SIGTERM and 129 when
// the terminal has gone; 141 when whoever read a job's output has.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	exitFailed     = 1   // the job failed in the engine
	exitUsage      = 2   // wrong command line, or not a job
	exitSignal     = 128 // and the signal's number, as shells report a process that one ended
	exitBrokenPipe = 141 // the same of one that writes to nobody
)

// console is what a command reads and writes.
type console struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

func main() {
	// Writing to nobody is an error like others, and not the end of the process
	// with all its temporary files left behind.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	c := &console{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	ctx, stop := interruptible(context.Background(), c.err)
	code := dispatch(ctx, c, os.Args[1:])
	stop()
	os.Exit(code)
}

// interruption is the cause of a context that a signal cancelled.
type interruption struct{ signal os.Signal }

func (i *interruption) Error() string {
	switch i.signal {
	case syscall.SIGTERM:
		return "ended by SIGTERM"
	case syscall.SIGHUP:
		return "ended, because the terminal has gone (SIGHUP)"
	}
	return "interrupted"
}

func (i *interruption) exitCode() int {
	number, _ := i.signal.(syscall.Signal)
	return exitSignal + int(number)
}

// interrupted returns the interruption that cancelled a context, nil if none did.
func interrupted(ctx context.Context) *interruption {
	i, _ := errors.AsType[*interruption](context.Cause(ctx))
	return i
}

// interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP
// cancels with an interruption as its cause. The second one ends the process at
// once. A SIGHUP that is ignored, as under nohup, stays ignored.
func interruptible(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var first *interruption
		select {
		case s := <-signals:
			first = &interruption{s}
		case <-quit:
			return
		}
		cancel(first)
		select {
		case <-signals:
			fmt.Fprintln(stderr, "quern: interrupted again, leaving at once")
			os.Exit(first.exitCode())
		case <-quit:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel(nil)
	}
}
