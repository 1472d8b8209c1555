package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPropertiesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quern.conf")
	text := "\ufeff# Spark's format\r\n" +
		"quern.executor.memory   2g\r\n" +
		"\n" +
		"  quern.app.name = word count # not a comment\n" +
		"! a comment too\n" +
		"quern.master:local[2]\n" +
		"quern.seed\t=7\n" +
		"quern.local.dir==odd"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadPropertiesFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{"quern.executor.memory", "2g", FromFile, path + ":2"},
		{"quern.app.name", "word count # not a comment", FromFile, path + ":4"},
		{"quern.master", "local[2]", FromFile, path + ":6"},
		{"quern.seed", "7", FromFile, path + ":7"},
		{"quern.local.dir", "=odd", FromFile, path + ":8"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestBadPropertiesFiles(t *testing.T) {
	_, err := ParseProperties([]byte("quern.seed\n# fine\n= 3\nquern.master =\n"), "q.conf")
	want := `q.conf:1: "quern.seed": want a key and a value` + "\n" + `q.conf:3: "= 3": want a key and a value` + "\n" +
		"q.conf:4: no value for quern.master"
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
	for name, text := range map[string]string{
		"a module":  "\x00asm\x01\x00\x00\x00",
		"latin-1":   "quern.app.name caf\xe9\n",
		"very long": strings.Repeat("#", maxPropertiesFile+1),
	} {
		if _, err := ParseProperties([]byte(text), "q.conf"); err == nil ||
			!strings.HasPrefix(err.Error(), "q.conf: not a properties file: ") {
			t.Errorf("%s: error %v, want one that says it is no properties file", name, err)
		}
	}
	if _, err := ReadPropertiesFile(filepath.Join(t.TempDir(), "none.conf")); err == nil ||
		!strings.Contains(err.Error(), "none.conf") {
		t.Errorf("missing file: error %v, want one that names it", err)
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("quern.executor.memory 2g\n# c\nquern.seed = 7\n"))
	f.Add([]byte("a\n=b\n:c\n\ufeff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		settings, err := ParseProperties(text, "f")
		if err != nil {
			return
		}
		for _, s := range settings {
			if s.Key == "" || s.Value == "" || strings.TrimSpace(s.Value) != s.Value {
				t.Fatalf("setting %q = %q from %q", s.Key, s.Value, text)
			}
		}
		// Whatever the settings are, they are taken or refused.
		if c, err := New().With(settings); (c == nil) == (err == nil) {
			t.Fatalf("neither a configuration nor an error for %q", text)
		}
	})
}
