package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes files and links in a new folder and returns its path. A content
// that begins with "->" makes a link.
func tree(t *testing.T, content map[string]string) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range content {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(strings.ReplaceAll(to, "HERE", folder), path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func grants(t *testing.T, folder string, read, write []string) *Grants {
	t.Helper()
	g, err := New(folder, read, write)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// content reads what path, as the user wrote it, leads to, by both ways there
// are to open it.
func content(t *testing.T, g *Grants, path string) (string, error) {
	t.Helper()
	abs, err := g.Abs(path)
	if err != nil {
		return "", err
	}
	read := func(f *os.File, err error) (string, error) {
		if err != nil {
			return "", err
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		return string(text), err
	}
	text, err := read(g.Open(abs))
	o := g.Opener()
	defer o.Close()
	for range 2 {
		text2, err2 := read(o.Open(abs))
		if text2 != text || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Errorf("%s: Open gives %q, %v and an Opener %q, %v", path, text, err, text2, err2)
		}
	}
	return text, err
}

func TestReadingBelowTheWorkingFolderIsGranted(t *testing.T) {
	folder := tree(t, map[string]string{"a": "A", "in/b": "B"})
	g := grants(t, folder, nil, nil)
	for path, want := range map[string]string{
		"a": "A", "./a": "A", "in/b": "B", "in/../a": "A", filepath.Join(folder, "in/b"): "B",
	} {
		if got, err := content(t, g, path); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

func TestGrantsOfFilesAndFolders(t *testing.T) {
	other := tree(t, map[string]string{
		"file": "F", "file2": "F2", "folder/x": "X", "folder2/x": "X2", "link": "->folder", "linked": "->file2",
	})
	at := func(name string) string { return filepath.Join(other, name) }
	g := grants(t, tree(t, nil), []string{at("file"), at("folder") + "/", at("link"), at("linked")}, nil)
	for path, want := range map[string]string{
		at("file"): "F", at("folder/x"): "X", at("link/x"): "X", at("linked"): "F2",
	} {
		if got, err := content(t, g, path); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	for _, path := range []string{at("file2"), at("folder2/x"), other, "/", at("file/../file2"), at("folder/../folder2/x")} {
		_, err := content(t, g, path)
		if want := "reading " + filepath.Clean(path) + " is not allowed: add --allow-read " + filepath.Clean(path); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}

func TestLinksLeadNowhereThatIsNotGranted(t *testing.T) {
	outside := tree(t, map[string]string{"secret": "S", "in/x": "X"})
	folder := tree(t, map[string]string{
		"a":            "A",
		"in/b":         "B",
		"inside":       "->in/b",
		"in/up":        "->../a",
		"folder":       "->in",
		"absolute":     "->HERE/in/b",
		"abs-folder":   "->HERE/in",
		"out":          "->" + outside + "/secret",
		"out-folder":   "->" + outside,
		"dots":         "->../../../../../../../../.." + outside + "/secret",
		"chain":        "->chain2",
		"chain2":       "->out-folder",
		"dangling":     "->nothing",
		"dangling-out": "->" + outside + "/nothing",
		"loop":         "->loop",
	})
	g := grants(t, folder, nil, nil)
	for path, want := range map[string]string{
		"inside": "B", "in/up": "A", "folder/b": "B", "absolute": "B", "abs-folder/b": "B", "folder/up": "A",
	} {
		if got, err := content(t, g, path); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	for path, real := range map[string]string{
		"out": "secret", "dots": "secret", "out-folder/secret": "secret", "chain/in/x": "in/x",
		"out-folder/in/../secret": "secret",
	} {
		_, err := content(t, g, path)
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || refused.Real != filepath.Join(outside, real) {
			t.Errorf("%s: error %v, want a refusal of %s", path, err, filepath.Join(outside, real))
		}
	}
	for _, path := range []string{"dangling", "dangling-out", "loop"} {
		if text, err := content(t, g, path); err == nil {
			t.Errorf("%s: read %q", path, text)
		}
	}
	if _, err := content(t, g, "dangling"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to nowhere: error %v, want fs.ErrNotExist", err)
	}

	// What is granted itself may be reached by a link, too.
	g = grants(t, folder, []string{filepath.Join(outside, "in")}, nil)
	if got, err := content(t, g, "chain/in/x"); got != "X" || err != nil {
		t.Errorf("a link from one grant to another: %q, %v, want X", got, err)
	}
	if _, err := content(t, g, "out"); err == nil {
		t.Error("a link to beside the other grant was followed")
	}
}

func TestMissingUnreadableAndRefusedAreToldApart(t *testing.T) {
	folder := tree(t, map[string]string{"closed": "C", "locked/x": "X", "in/x": "X"})
	g := grants(t, folder, nil, nil)
	for _, name := range []string{"closed", "locked"} {
		if err := os.Chmod(filepath.Join(folder, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	asNobody(t, folder, func() {
		for path, want := range map[string]string{
			"nothing":     "reading " + at("nothing") + ": there is no such file or folder",
			"in/nothing":  "reading " + at("in/nothing") + ": there is no such file or folder",
			"closed":      "reading " + at("closed") + ": the system does not let this user do it (permission denied)",
			"locked/x":    "reading " + at("locked/x") + ": the system does not let this user do it (permission denied)",
			"in":          "reading " + at("in") + ": it is a folder, not a file",
			"in/x/y":      "reading " + at("in/x/y") + ": not a directory",
			"/etc/passwd": "reading /etc/passwd is not allowed: add --allow-read /etc/passwd",
			"/a b":        `reading /a b is not allowed: add --allow-read "/a b"`,
		} {
			abs, err := g.Abs(path)
			if err != nil {
				t.Error(err)
			}
			if _, err = g.Open(abs); err == nil || err.Error() != want {
				t.Errorf("%s: error\n     %v\nwant %s", path, err, want)
			}
		}
	})
}

func TestOnlyFilesAreOpened(t *testing.T) {
	g := grants(t, "/dev", nil, nil)
	if _, err := content(t, g, "null"); err == nil || err.Error() != "reading /dev/null: it is neither a file nor a folder" {
		t.Errorf("/dev/null: error %v, want that it is no file", err)
	}
}

func TestBadGrants(t *testing.T) {
	for flag, g := range map[string]struct{ read, write []string }{
		"--allow-read":  {read: []string{"a", ""}},
		"--allow-write": {write: []string{"a\x00b"}},
		`--allow-read "s3://b": s3://b: this version reads`: {read: []string{"s3://b"}},
	} {
		if _, err := New(".", g.read, g.write); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("error %v, want one that names %s", err, flag)
		}
	}
}

func TestWalk(t *testing.T) {
	outside := tree(t, map[string]string{"secret": "S"})
	folder := tree(t, map[string]string{
		"in/b": "12", "in/a.d/x": "1", "in/a/x": "123", "in/a/back": "->..", "in/a/self": "->.",
		"in/linked": "->a/x", "in/other": "->../beside", "beside/y": "1", "in/_skipped/x": "1", "in/.hidden": "1",
		"in/a/abs": "->HERE/beside", "out/x": "1", "out/secret": "->" + outside + "/secret", "gone/x": "->nothing",
	})
	g := grants(t, folder, nil, nil)
	skip := func(name string) bool { return name[0] == '_' || name[0] == '.' }
	found, err := g.Walk(filepath.Join(folder, "in"), skip)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	sizes := int64(0)
	for _, f := range found {
		rel, _ := filepath.Rel(folder, f.Path)
		got = append(got, rel)
		sizes += f.Size
	}
	want := []string{"in/a.d/x", "in/a/abs/y", "in/a/x", "in/b", "in/linked", "in/other/y"}
	if diff := cmp.Diff(want, got); diff != "" || sizes != 1+1+3+2+3+1 {
		t.Errorf("%d bytes (-want +got):\n%s", sizes, diff)
	}

	link := filepath.Join(folder, "out/secret")
	if _, err := g.Walk(filepath.Join(folder, "out"), skip); err == nil ||
		err.Error() != "reading "+link+" is not allowed, because it leads to "+outside+"/secret: add --allow-read "+outside+"/secret" {
		t.Errorf("a link out: error %v, want a refusal that names it", err)
	}
	dangling := filepath.Join(folder, "gone/x")
	if _, err := g.Walk(filepath.Join(folder, "gone"), skip); err == nil ||
		err.Error() != "reading "+dangling+": there is no such file or folder" {
		t.Errorf("a dangling link: error %v, want one that names it", err)
	}
}

func TestGlob(t *testing.T) {
	outside := tree(t, map[string]string{"x.log": ""})
	folder := tree(t, map[string]string{
		"a.log": "", "b.log": "", "b.txt": "", "in/c.log": "", "in/deep/d.log": "", "in/deep/back": "->..",
		"linked": "->in", "out": "->" + outside,
	})
	g := grants(t, folder, nil, nil)
	for pattern, want := range map[string][]string{
		"*.log":       {"a.log", "b.log"},
		"[b-c].*":     {"b.log", "b.txt"},
		"{a,b}.log":   {"a.log", "b.log"},
		"?.txt":       {"b.txt"},
		"i*/*.log":    {"in/c.log"},
		"in/**/*.l*":  {"in/c.log", "in/deep/d.log"},
		"l*/*.log":    {"linked/c.log"},
		"i*/d*/b*/c*": {"in/deep/back/c.log"},
		"none/*":      nil,
		"*.none":      nil,
	} {
		names, err := g.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		var got []string
		for _, n := range names {
			rel, _ := filepath.Rel(folder, n)
			got = append(got, rel)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	for _, pattern := range []string{"out/*", "o*/*"} {
		names, err := g.Glob(filepath.Join(folder, pattern))
		if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Real != outside {
			t.Errorf("%s, behind a link out of the grant: %q, %v, want a refusal of %s", pattern, names, err, outside)
		}
	}
	if _, err := g.Glob(filepath.Join(folder, "[")); err == nil || !strings.Contains(err.Error(), "not a valid pattern") {
		t.Errorf("[: error %v, want that it is not valid", err)
	}
}
