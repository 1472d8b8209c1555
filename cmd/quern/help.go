package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

func helpCommand() command {
	return command{
		name:  "help",
		args:  "[COMMAND]",
		short: "explain a command and its flags",
		words: commandNames,
		setup: func(*pflag.FlagSet) action {
			return func(_ context.Context, c *console, args []string) error {
				switch len(args) {
				case 0:
					io.WriteString(c.out, overview())
					return nil
				case 1:
					cmd, err := findCommand(args[0])
					if err != nil {
						return usagef("%v", err)
					}
					io.WriteString(c.out, cmd.help())
					return nil
				}
				return usagef("wants one command, has %d arguments", len(args))
			}
		},
	}
}

// overview lists the commands.
func overview() string {
	var b strings.Builder
	b.WriteString("Quern runs batch jobs, written as ordinary programs, in WebAssembly sandboxes.\n\n" +
		"Usage: quern COMMAND [flags] [arguments]\n\nCommands:\n")
	for _, cmd := range visibleCommands() {
		fmt.Fprintf(&b, "  %-11s %s\n", cmd.name, cmd.short)
	}
	b.WriteString("\n'quern help COMMAND' lists a command's flags. A first job: 'quern new hello'.\n")
	return b.String()
}

// help is the command's usage line, explanation and flags with defaults.
func (cmd *command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: quern %s", cmd.name)
	if cmd.args != "" {
		fmt.Fprintf(&b, " %s", cmd.args)
	}
	fmt.Fprintf(&b, "\n\n%s\n", strings.TrimSpace(cmp.Or(cmd.long, cmd.short)))
	flags, _ := cmd.flags()
	if flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsagesWrapped(100))
	}
	return b.String()
}
