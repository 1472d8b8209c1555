package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/engine/conf"
)

func completionCommand() command {
	return command{
		name:  "completion",
		args:  "bash|zsh|fish",
		words: func() []string { return []string{"bash", "zsh", "fish"} },
		short: "print a completion script for a shell",
		long: `Print a script that completes quern's commands and flags in a shell.

  bash:  source <(quern completion bash)
  zsh:   source <(quern completion zsh)
  fish:  quern completion fish | source`,
		setup: func(*pflag.FlagSet) action {
			return func(_ context.Context, c *console, args []string) error {
				if len(args) != 1 {
					return usagef("wants one shell (bash, zsh or fish), has %d arguments", len(args))
				}
				script, ok := map[string]func() string{
					"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion,
				}[args[0]]
				if !ok {
					return usagef("no script for the shell %q: there are bash, zsh and fish", args[0])
				}
				_, err := io.WriteString(c.out, script())
				return err
			}
		},
	}
}

// visibleCommands are those that a user may type.
func visibleCommands() []command {
	var visible []command
	for _, cmd := range commands() {
		if !cmd.hidden {
			visible = append(visible, cmd)
		}
	}
	return visible
}

func commandNames() []string {
	var names []string
	for _, cmd := range visibleCommands() {
		names = append(names, cmd.name)
	}
	return names
}

// flagValues are the values of a flag that are known beforehand, nil if none are. One
// that ends with = is continued by the user.
func flagValues(flag string) []string {
	switch flag {
	case "conf":
		names := conf.Names()
		for i := range names {
			names[i] += "="
		}
		return names
	case "master":
		return []string{"local", "local[*]", "local[2]", "local[2,4]"}
	}
	return nil
}

func bashCompletion() string {
	var b strings.Builder
	b.WriteString(`# bash completion for quern
_quern_offer() {
	local word=$1 candidate
	shift
	for candidate; do
		[[ $candidate == "$word"* ]] && COMPREPLY+=("$candidate")
	done
	if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]]; then
		compopt -o nospace 2>/dev/null
	fi
	return 0
}
_quern() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
	COMPREPLY=()
	# Bash takes the = of --flag=value for a word of its own.
	if [[ $word == = ]]; then
		word=
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $COMP_CWORD -eq 1 ]]; then
`)
	offer := func(indent string, words []string) {
		b.WriteString(indent + `_quern_offer "$word"`)
		for _, w := range words {
			b.WriteString(" " + quoted(w))
		}
		b.WriteByte('\n')
	}
	offer("\t\t", commandNames())
	b.WriteString("\t\treturn\n\tfi\n\tcase $command in\n")
	for _, cmd := range visibleCommands() {
		fmt.Fprintf(&b, "\t%s)\n\t\tcase $before in\n", cmd.name)
		flags, _ := cmd.flags()
		var words []string
		flags.VisitAll(func(f *pflag.Flag) {
			words = append(words, "--"+f.Name)
			if values := flagValues(f.Name); values != nil {
				fmt.Fprintf(&b, "\t\t--%s)\n", f.Name)
				offer("\t\t\t", values)
				b.WriteString("\t\t\treturn\n\t\t\t;;\n")
			}
		})
		b.WriteString("\t\tesac\n\t\tif [[ $word == -* ]]; then\n")
		offer("\t\t\t", append(words, "--help"))
		if cmd.words != nil {
			b.WriteString("\t\telse\n")
			offer("\t\t\t", cmd.words())
		}
		b.WriteString("\t\tfi\n\t\t;;\n")
	}
	b.WriteString("\tesac\n}\ncomplete -o default -F _quern quern\n")
	return b.String()
}

func zshCompletion() string {
	var b strings.Builder
	b.WriteString("#compdef quern\n# zsh completion for quern\n_quern() {\n\tlocal -a commands=(\n")
	for _, cmd := range visibleCommands() {
		fmt.Fprintf(&b, "\t\t%s\n", quoted(cmd.name+":"+cmd.short))
	}
	b.WriteString(`	)
	if (( CURRENT == 2 )); then
		_describe command commands
		return
	fi
	local command=$words[2]
	shift words
	(( CURRENT-- ))
	case $command in
`)
	for _, cmd := range visibleCommands() {
		fmt.Fprintf(&b, "\t%s)\n\t\t_arguments", cmd.name)
		flags, _ := cmd.flags()
		flags.VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			spec := "--" + f.Name + "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(usage) + "]"
			if f.NoOptDefVal == "" {
				spec += ":" + strings.ReplaceAll(value, ":", `\:`) + ":_files"
			}
			if strings.HasSuffix(f.Value.Type(), "Array") {
				spec = "*" + spec
			}
			fmt.Fprintf(&b, " \\\n\t\t\t%s", quoted(spec))
		})
		b.WriteString(" \\\n\t\t\t'--help[explain the command]'")
		if cmd.words != nil {
			fmt.Fprintf(&b, " \\\n\t\t\t%s", quoted("1: :("+strings.Join(cmd.words(), " ")+")"))
		} else if cmd.files {
			b.WriteString(" \\\n\t\t\t'*:file:_files'")
		}
		b.WriteString("\n\t\t;;\n")
	}
	b.WriteString("\tesac\n}\ncompdef _quern quern\n")
	return b.String()
}

func fishCompletion() string {
	var b strings.Builder
	b.WriteString("# fish completion for quern\n")
	for _, cmd := range visibleCommands() {
		fmt.Fprintf(&b, "complete -c quern -n __fish_use_subcommand -f -a %s -d %s\n", cmd.name, quoted(cmd.short))
		inside := fmt.Sprintf("complete -c quern -n '__fish_seen_subcommand_from %s'", cmd.name)
		flags, _ := cmd.flags()
		flags.VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, "%s -l %s", inside, f.Name)
			if f.Shorthand != "" {
				fmt.Fprintf(&b, " -s %s", f.Shorthand)
			}
			if f.NoOptDefVal == "" {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", quoted(usage))
		})
		if cmd.words != nil {
			fmt.Fprintf(&b, "%s -f -a %s\n", inside, quoted(strings.Join(cmd.words(), " ")))
		} else if !cmd.files {
			fmt.Fprintf(&b, "%s -f\n", inside)
		}
	}
	return b.String()
}

// quoted puts s into single quotes in a way that bash, zsh and fish agree on.
func quoted(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}
