package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPropertiesFile bounds what is read as a properties file, in bytes.
const maxPropertiesFile = 1 << 20

// ReadPropertiesFile reads a file in the format of [ParseProperties].
func ReadPropertiesFile(path string) ([]Setting, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the properties file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPropertiesFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the properties file: %w", err)
	}
	return ParseProperties(text, path)
}

// ParseProperties reads Spark's properties format: a key and a value on each
// line, with white space, = or : between them; lines that begin with # or !
// are comments. name is used in the settings' origins and in errors, of which
// all are reported at once.
func ParseProperties(text []byte, name string) ([]Setting, error) {
	if len(text) > maxPropertiesFile {
		return nil, fmt.Errorf("%s: not a properties file: longer than %v", name, Bytes(maxPropertiesFile))
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("%s: not a properties file: not UTF-8 text", name)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var settings []Setting
	var problems []error
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		end := strings.IndexFunc(line, func(r rune) bool { return r == '=' || r == ':' || unicode.IsSpace(r) })
		if end <= 0 {
			problems = append(problems, fmt.Errorf("%s:%d: %q: want a key and a value", name, n, line))
			continue
		}
		// Between them: white space, at most one = or :, white space.
		val := strings.TrimSpace(line[end:])
		if val != "" && (val[0] == '=' || val[0] == ':') {
			val = strings.TrimSpace(val[1:])
		}
		if val == "" {
			problems = append(problems, fmt.Errorf("%s:%d: no value for %s", name, n, line[:end]))
			continue
		}
		settings = append(settings, Setting{
			Key: line[:end], Value: val, Source: FromFile, Origin: fmt.Sprintf("%s:%d", name, n),
		})
	}
	return settings, errors.Join(problems...)
}
