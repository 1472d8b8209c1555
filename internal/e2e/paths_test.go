package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// folder is a folder of the test's own with files in it: their texts by their
// paths.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Paths that cannot be read or written are named, with the reason and what to do,
// and nothing is changed.
func TestPathsThatDoNotWork(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		args  []string
		want  string // on standard error; DIR is the current folder
	}{
		"missing":       {nil, []string{"count", "missing"}, "textFile at <reading>: reading DIR/missing: there is no such file or folder\n"},
		"below a file":  {nil, []string{"count", "in/a/b"}, "textFile at <reading>: reading DIR/in/a/b: not a directory\n"},
		"no match":      {nil, []string{"count", "in/*.csv"}, "textFile at <reading>: reading DIR/in/*.csv: no file matches; names that begin with _ or . do not count\n"},
		"a bad pattern": {nil, []string{"count", "in/[a"}, "textFile at <reading>: reading DIR/in/[a: it is not a valid pattern (* ? [a-z] {a,b} **)\n"},

		"reading elsewhere": {nil, []string{"count", "/etc/passwd"},
			"textFile at <reading>: reading /etc/passwd is not allowed: add --allow-read /etc/passwd\n"},
		"reading above": {nil, []string{"count", "../x"},
			"textFile at <reading>: reading PARENT/x is not allowed: add --allow-read PARENT/x\n"},
		"reading over a link": {nil, []string{"count", "link"},
			"textFile at <reading>: reading DIR/link is not allowed, because it leads to /etc/passwd: add --allow-read /etc/passwd\n"},
		"reading by another permission": {[]string{"--allow-read", "/usr", "--allow-write", "/etc"}, []string{"count", "/etc/passwd"},
			"textFile at <reading>: reading /etc/passwd is not allowed: add --allow-read /etc/passwd\n"},

		"writing": {nil, []string{"save", "out", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/out: writing DIR/out is not allowed: add --allow-write DIR/out\n"},
		"writing elsewhere": {[]string{"--allow-write", "in"}, []string{"save", "out", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/out: writing DIR/out is not allowed: add --allow-write DIR/out\n"},
		"writing over a link": {[]string{"--allow-write", "."}, []string{"save", "folder/out", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/folder/out: writing DIR/folder/out is not allowed, because it leads to /tmp/out: " +
				"add --allow-write /tmp/out\n"},
		"an existing folder": {[]string{"--allow-write", "."}, []string{"save", "in", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/in: it exists already, and output never replaces anything: remove it, or save elsewhere\n"},
		"an existing file": {[]string{"--allow-write", "."}, []string{"save", "in/a", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/in/a: it exists already, and output never replaces anything: remove it, or save elsewhere\n"},
		"an empty folder": {[]string{"--allow-write", "."}, []string{"save", "empty", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/empty: it exists already, and output never replaces anything: remove it, or save elsewhere\n"},
		"writing below a file": {[]string{"--allow-write", "."}, []string{"save", "in/a/b", "1024", "none"},
			"saveAsTextFile at <saving>: saving to DIR/in/a/b: writing DIR/in/a/b: not a directory\n"},

		// Of three partitions the output is there already when this one fails.
		"a task that fails": {[]string{"--allow-write", ".", "--master", "local[1]"}, []string{"save", "new/out", "65536", "panic"},
			"job 0 (saveAsTextFile at <saving>) failed: stage 0 (mapPartitionsWithIndex at <a task that saves>) partition 1 failed: " +
				"mapPartitionsWithIndex at <a task that saves>: panic: element 2 is bad | and has two lines\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"in/a": "one\n", "empty/x": ""})
			for _, err := range []error{
				os.Remove(filepath.Join(dir, "empty", "x")),
				os.Symlink("/etc/passwd", filepath.Join(dir, "link")),
				os.Symlink("/tmp", filepath.Join(dir, "folder")),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			before := namesIn(t, dir)
			r := runGuest(t, dir, c.flags, "faults", c.args...)
			stderr := strings.ReplaceAll(legible(t, "faults", r.stderr), dir, "DIR")
			stderr = strings.ReplaceAll(stderr, filepath.Dir(dir), "PARENT")
			if r.code != 1 || !strings.HasPrefix(stderr, c.want) {
				t.Errorf("exit code %d", r.code)
				compare(t, "stderr", c.want, stderr)
			}
			compare(t, "the files", strings.Join(before, "\n"), strings.Join(namesIn(t, dir), "\n"))
			if got := filesIn(t, filepath.Join(dir, "in")); !maps.Equal(got, map[string]string{"a": "one\n"}) {
				t.Errorf("the input is %q now", got)
			}
		})
	}
}

// Compressed input that is damaged is named, with how far it was understood.
func TestDamagedCompressedInput(t *testing.T) {
	var gz, zst bytes.Buffer
	text := ""
	for random := rand.New(rand.NewPCG(6, 0)); len(text) < 200_000; {
		text += fmt.Sprintf("%x a line that is packed well\n", random.Uint64())
	}
	packed := gzip.NewWriter(&gz)
	frames, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{packed, frames} {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const failed = "job 0 (count at <reading>) failed: stage 0 (textFile at <reading>) partition 0 failed: reading DIR/FILE: "
	for _, c := range []struct {
		name   string
		good   string
		damage func(good string) string
		want   string
	}{
		{"whole.gz", gz.String(), func(s string) string { return s }, ""},
		{"whole.zst", zst.String(), func(s string) string { return s }, ""},
		{"two.gz", gz.String(), func(s string) string { return s + s }, ""},
		{"two.zst", zst.String(), func(s string) string { return s + s }, ""},
		{"cut.gz", gz.String(), func(s string) string { return s[:30_000] }, "its gzip data ends early, at byte 30000 of the file: it is truncated\n"},
		{"cut.zst", zst.String(), func(s string) string { return s[:30_000] }, "its zstd data ends early, at byte 30000 of the file: it is truncated\n"},
		{"second.gz", gz.String(), func(s string) string { return s + s[:len(s)-1] }, "its gzip data ends early, at byte "},
		{"flipped.gz", gz.String(), flipped, "bad gzip data at or before byte "},
		{"flipped.zst", zst.String(), flipped, "bad zstd data at or before byte "},
		{"text.gz", text, func(s string) string { return s }, "bad gzip data at or before byte "},
		{"text.zst", text, func(s string) string { return s }, "bad zstd data at or before byte "},
		{"tail.gz", gz.String(), func(s string) string { return s + "something else\n" }, "bad gzip data at or before byte "},
		{"tail.zst", zst.String(), func(s string) string { return s + "something else\n" }, "bad zstd data at or before byte "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{c.name: c.damage(c.good)})
			r := runGuest(t, dir, nil, "faults", "count", c.name)
			if c.want == "" {
				if want := fmt.Sprintln(strings.Count(text, "\n")*(1+strings.Count(c.name, "two")), "lines"); r != (result{stdout: want}) {
					t.Errorf("%+v, want %s", r, want)
				}
				return
			}
			want := strings.Replace(failed, "FILE", c.name, 1) + c.want
			stderr := strings.ReplaceAll(legible(t, "faults", r.stderr), dir, "DIR")
			if r.code != 1 || r.stdout != "0 lines\n" || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q", r.code, r.stdout)
				compare(t, "stderr", want, stderr)
			}
		})
	}
}

// flipped is s with a bit changed in the middle.
func flipped(s string) string {
	b := []byte(s)
	b[len(b)/2] ^= 4
	return string(b)
}
