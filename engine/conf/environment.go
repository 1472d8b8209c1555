package conf

import (
	"strings"
	"unicode"
)

// EnvironmentPrefix begins the names of all environment variables that are
// settings.
const EnvironmentPrefix = "QUERN_"

// EnvironmentName is the environment variable of a key: an underscore for each
// dot and before each capital inside a word, then all in capitals. So
// quern.executor.memory is QUERN_EXECUTOR_MEMORY and quern.task.maxFailures is
// QUERN_TASK_MAX_FAILURES. The way back is by looking the name up among those
// of the declared keys, no two of which share one.
func EnvironmentName(key string) string {
	var b strings.Builder
	for i, r := range key {
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && i > 0 && key[i-1] != '.':
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// FromEnviron returns the settings among environment variables in the form of
// os.Environ. A variable that begins with QUERN_ and belongs to no key is
// reported by With as an unknown key; one that is empty counts as not there.
func FromEnviron(environ []string) []Setting {
	byName := make(map[string]string)
	for _, k := range keys() {
		byName[EnvironmentName(k.name)] = k.name
	}
	var settings []Setting
	for _, e := range environ {
		name, val, ok := strings.Cut(e, "=")
		if !ok || val == "" || !strings.HasPrefix(name, EnvironmentPrefix) {
			continue
		}
		key, ok := byName[name]
		if !ok {
			// Not a key, but readable as one, so that the nearest can be found.
			key = strings.ReplaceAll(strings.ToLower(name), "_", ".")
		}
		settings = append(settings, Setting{Key: key, Value: val, Source: FromEnvironment, Origin: name})
	}
	return settings
}
