// Command quern runs Spark-shaped batch jobs whose user code is a WebAssembly
// module, and helps to write, build and inspect such jobs. Each subcommand is
// a file of this package; command.go has what they share.
//
// Standard output belongs to the job (or to the answer that a command was
// asked for). Progress, logs and errors go to standard error. The exit code is
// the job's own; 1 if the job failed in the engine; 2 for a wrong command line
// or a file that is not a job; 130 after Ctrl-C; 141 when whoever read a job's
// output has gone.
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
	exitFailed      = 1   // the job failed in the engine
	exitUsage       = 2   // wrong command line, or not a job
	exitInterrupted = 130 // as shells report a process ended by Ctrl-C
	exitBrokenPipe  = 141 // as shells report a process that writes to nobody
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

// errInterrupted is the cause of a context that Ctrl-C cancelled.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels
// with errInterrupted as its cause. The second one ends the process at once.
func interruptible(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-signals:
		case <-quit:
			return
		}
		cancel(errInterrupted)
		select {
		case <-signals:
			fmt.Fprintln(stderr, "quern: interrupted again, leaving at once")
			os.Exit(exitInterrupted)
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
