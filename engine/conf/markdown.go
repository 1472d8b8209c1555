package conf

import (
	"fmt"
	"strings"
)

// Markdown is docs/configuration.md, made from the declarations.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from engine/conf by: go test ./engine/conf -run TestDocumentation -update -->

A value comes from the first of these that has one:

1. the job itself (` + "`quern.Conf(key, value)`" + ` when it opens its context),
2. flags of ` + "`quern run`" + ` (` + "`--conf KEY=VALUE`" + `, and those with a name of their own, such as ` + "`--task-memory`" + `),
3. the file given with ` + "`--properties-file`" + `,
4. environment variables,
5. the default.

A key that does not exist and a value that a key does not take are errors, and all of them are reported at once.

**Properties file.** One key and one value on each line, with white space or ` + "`=`" + ` between them. Lines that begin with
` + "`#`" + ` are comments.

**Environment variables.** A key's variable has an underscore for each dot and before each capital inside a word, then all
in capitals: ` + "`quern.task.maxFailures` is `QUERN_TASK_MAX_FAILURES`" + `. An empty variable counts as not set.

**Sizes** are whole numbers with a unit (` + "`k`, `m`, `g`, `t`" + `: powers of 1024); without one they are bytes.
**Durations** are whole numbers with a unit (` + "`us`, `ms`, `s`, `m`, `h`, `d`" + `).

Keys marked *at launch* cannot be set by the job: they are decided before it runs, or protect the machine from it.
Of keys marked *capped at launch* a job can ask for less than was decided before it runs, but not for more.
`)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, e := range s.entries {
			k := e.declared()
			fmt.Fprintf(&b, "\n### `%s`\n\n", k.name)
			fmt.Fprintf(&b, "Default: %s. Takes %s.", shownDefault(k), k.allowed)
			if k.launchOnly {
				b.WriteString(" Set *at launch*.")
			}
			if k.exceeds != nil {
				b.WriteString(" *Capped at launch*.")
			}
			fmt.Fprintf(&b, " Environment: `%s`.\n\n%s\n", EnvironmentName(k.name), k.doc)
		}
	}
	return b.String()
}

func shownDefault(k *declaration) string {
	switch {
	case k.initialFunc != nil:
		return k.initial
	case k.initial == "":
		return "empty"
	}
	return "`" + k.initial + "`"
}
