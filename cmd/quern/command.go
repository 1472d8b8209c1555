package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/internal/spelling"
)

// command is one subcommand.
type command struct {
	name  string
	args  string // what follows the name in a usage line
	short string // one line for the overview
	long  string // paragraphs for the command's own help
	// words are the arguments that are known beforehand, files says that they
	// are files or folders: for the completion of shells.
	words func() []string
	files bool
	// hidden commands are for quern's own child processes.
	hidden bool
	// stopAtArgument ends the parsing of flags at the first argument, so that
	// what follows it passes through untouched.
	stopAtArgument bool
	// setup declares the command's flags and returns what runs once they are
	// parsed.
	setup func(*pflag.FlagSet) action
}

// action does a command's work. args are the arguments that are not flags.
type action func(ctx context.Context, c *console, args []string) error

// commands lists every subcommand in the order of the overview.
func commands() []command {
	return []command{
		runCommand(),
		buildCommand(),
		newCommand(),
		inspectCommand(),
		versionCommand(),
		completionCommand(),
		helpCommand(),
		compileModuleCommand(),
	}
}

// exitError carries the exit code that an error asks for. A nil err has
// already been told to the user.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// notAJob marks an error that the job's author, not the engine, has to mend.
func notAJob(err error) error { return &exitError{exitUsage, err} }

// usageError is a wrong command line. Its message is followed by a hint.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// dispatch runs the subcommand that args begin with and returns the exit code.
func dispatch(ctx context.Context, c *console, args []string) int {
	if len(args) == 0 {
		io.WriteString(c.err, overview())
		return exitUsage
	}
	switch args[0] {
	case "-h", "--help":
		args = []string{"help"}
	case "--version":
		args = []string{"version"}
	}
	cmd, err := findCommand(args[0])
	if err != nil {
		fmt.Fprintf(c.err, "quern: %v; see 'quern help'\n", err)
		return exitUsage
	}
	return report(ctx, c, cmd, cmd.run(ctx, c, args[1:]))
}

// run parses the flags in args and does the command's work.
func (cmd *command) run(ctx context.Context, c *console, args []string) error {
	flags, act := cmd.flags()
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		io.WriteString(c.out, cmd.help())
		return nil
	}
	if err != nil {
		return flagError(flags, err)
	}
	return act(ctx, c, flags.Args())
}

// flags returns the command's flags and the action that they steer.
func (cmd *command) flags() (*pflag.FlagSet, action) {
	flags := pflag.NewFlagSet(cmd.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard) // report prints the errors
	flags.Usage = func() {}
	flags.SortFlags = false
	flags.SetInterspersed(!cmd.stopAtArgument)
	return flags, cmd.setup(flags)
}

// report tells the user of err, if it is one, and returns the exit code.
func report(ctx context.Context, c *console, cmd *command, err error) int {
	if err == nil {
		return 0
	}
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(c.err, "quern %s: %s; see 'quern help %s'\n", cmd.name, usage.message, cmd.name)
		return exitUsage
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			fmt.Fprintf(c.err, "quern %s: %v\n", cmd.name, exit.err)
		}
		return exit.code
	}
	if i := interrupted(ctx); i != nil {
		fmt.Fprintf(c.err, "quern %s: %v\n", cmd.name, i)
		return i.exitCode()
	}
	fmt.Fprintf(c.err, "quern %s: %v\n", cmd.name, err)
	return exitFailed
}

// findCommand returns the command of that name, or an error that suggests one.
func findCommand(name string) (*command, error) {
	all := commands()
	names := make([]string, 0, len(all))
	for i := range all {
		if all[i].name == name {
			return &all[i], nil
		}
		if !all[i].hidden {
			names = append(names, all[i].name)
		}
	}
	if strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("unknown flag %s%s", name, didYouMean("", name, []string{"--help", "--version"}))
	}
	return nil, fmt.Errorf("unknown command %q%s", name, didYouMean("", name, names))
}

// flagError turns pflag's error into one line, with the nearest flag for one
// that does not exist.
func flagError(flags *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usagef("%v", err)
	}
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		return usagef("unknown flag -%.1s in -%s%s", unknown.GetSpecifiedName(), short,
			didYouMean("--", short, flagNames(flags)))
	}
	name := unknown.GetSpecifiedName()
	return usagef("unknown flag --%s%s", name, didYouMean("--", name, flagNames(flags)))
}

// didYouMean returns ": did you mean X?" for the candidate nearest to name,
// with prefix before it, or nothing when none is near.
func didYouMean(prefix, name string, candidates []string) string {
	if near := spelling.Nearest(name, candidates); near != "" {
		return ": did you mean " + prefix + near + "?"
	}
	return ""
}

func flagNames(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
