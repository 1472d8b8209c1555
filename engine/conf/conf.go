// Package conf holds every configuration key of Quern, once, and the values of
// one application.
//
// A key is declared in keys.go with its type, default, range and
// documentation; its declaration is how code reads it:
//
//	n := conf.TaskMaxFailures.Get(c)
//
// A [Conf] is an immutable value. It starts as the defaults and takes settings
// on top of them:
//
//	c, err := conf.New().With(environment, file, flags)
//	c, err = c.With(job)
//
// Where two settings name the same key, the one from the stronger [Source]
// holds, whatever the order in which they are given: what the job sets, then
// flags, then the properties file, then environment variables, then the
// default. Of two settings from the same source the later one holds.
//
// Every setting is checked when it is given, the ones that are overridden too,
// and an error lists all problems at once. docs/configuration.md is generated
// from the declarations (see [Markdown]).
package conf

import (
	"fmt"
	"maps"
	"strings"
)

// Source is where a value came from. A larger one is stronger.
type Source uint8

const (
	FromDefault Source = iota
	FromEnvironment
	FromFile
	FromFlag
	FromJob
)

var sourceNames = [...]string{"default", "environment", "properties file", "flag", "job"}

func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return fmt.Sprintf("source(%d)", uint8(s))
}

// Setting is one value for one key, as somebody wrote it.
type Setting struct {
	Key    string
	Value  string
	Source Source
	// Origin says where exactly, for people: "--task-memory", "q.conf:12",
	// "QUERN_TASK_MEMORY". It may be empty.
	Origin string
}

// place says where the setting was made, for error messages and printing.
func (s Setting) place() string {
	if s.Origin == "" {
		return s.Source.String()
	}
	return s.Origin
}

// Conf is the configuration of one application: a value for every key. It does
// not change, so it may be shared between goroutines.
type Conf struct {
	values map[string]value
}

type value struct {
	parsed  any
	setting Setting
}

// Names are the names of all keys, as the documentation lists them.
func Names() []string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

// New returns the defaults. Those that depend on the machine or the run (a
// seed drawn at random, the temporary folder) are decided here, once.
func New() *Conf {
	c := &Conf{values: make(map[string]value)}
	for _, k := range keys() {
		text := k.defaultValue()
		parsed, err := k.parse(text)
		if err != nil {
			panic(fmt.Sprintf("conf: default %q of %s: %v", text, k.name, err))
		}
		c.values[k.name] = value{parsed, Setting{Key: k.name, Value: text, Source: FromDefault}}
	}
	return c
}

// With returns a configuration with the settings on top of c. The error is an
// [Errors] that holds every problem of the settings: an [UnknownKeyError], a
// [ValueError], a [LaunchOnlyError] or a [CappedError] each. What a job sets is
// given last, when all that limits it is known.
func (c *Conf) With(settings ...[]Setting) (*Conf, error) {
	next := &Conf{values: maps.Clone(c.values)}
	var problems Errors
	for _, group := range settings {
		for _, s := range group {
			k := find(s.Key)
			if k == nil {
				problems = append(problems, &UnknownKeyError{Setting: s, Nearest: nearest(s.Key)})
				continue
			}
			s.Value = strings.TrimSpace(s.Value)
			parsed, err := k.parse(s.Value)
			if err != nil {
				problems = append(problems, &ValueError{Setting: s, Cause: err, Allowed: k.allowed})
				continue
			}
			if s.Source == FromJob && k.launchOnly {
				problems = append(problems, &LaunchOnlyError{Setting: s})
				continue
			}
			if limit := next.values[k.name]; s.Source == FromJob && k.exceeds != nil && k.exceeds(parsed, limit.parsed) {
				problems = append(problems, &CappedError{Setting: s, Limit: limit.setting.Value})
				continue
			}
			if s.Source >= next.values[k.name].setting.Source {
				next.values[k.name] = value{parsed, s}
			}
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return next, nil
}

// Lookup returns a key's value as text and whether there is such a key.
func (c *Conf) Lookup(key string) (string, bool) {
	v, ok := c.values[key]
	return v.setting.Value, ok
}

// Settings returns the setting that holds for each key, in the order of the
// documentation.
func (c *Conf) Settings() []Setting {
	var all []Setting
	for _, k := range keys() {
		all = append(all, c.values[k.name].setting)
	}
	return all
}

// String is the configuration in the format of a properties file, with the
// origin of each value that is not a default as a comment above it.
func (c *Conf) String() string {
	var b strings.Builder
	for _, s := range c.Settings() {
		if s.Source != FromDefault {
			fmt.Fprintf(&b, "# from %s\n", s.place())
		}
		if s.Value == "" {
			fmt.Fprintf(&b, "# %s is empty\n", s.Key)
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", s.Key, s.Value)
	}
	return b.String()
}

// JobSettings returns what a job set when it opened its context.
func JobSettings(values map[string]string) []Setting {
	settings := make([]Setting, 0, len(values))
	for _, k := range sortedKeys(values) {
		settings = append(settings, Setting{Key: k, Value: values[k], Source: FromJob, Origin: "the job"})
	}
	return settings
}

// ParseAssignment reads KEY=VALUE, as after --conf.
func ParseAssignment(text, flag string) (Setting, error) {
	key, val, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return Setting{}, fmt.Errorf("%s %s: want KEY=VALUE, such as %s %s=256m", flag, text, flag, ExecutorMemory.name)
	}
	return Setting{Key: key, Value: strings.TrimSpace(val), Source: FromFlag, Origin: flag}, nil
}
