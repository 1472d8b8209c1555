package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// list names all that is in a folder, folders with a slash.
func list(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(folder, path)
		if d != nil && d.IsDir() {
			rel += "/"
		}
		names = append(names, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "./" })
}

func create(g *Grants, path, text string) error {
	f, err := g.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func TestNothingMayBeWrittenUnlessGranted(t *testing.T) {
	folder := tree(t, map[string]string{"a": "A", "out/x": "X", "out2/x": "X"})
	at := func(name string) string { return filepath.Join(folder, name) }
	g := grants(t, folder, nil, []string{"out"})
	for name, err := range map[string]error{
		"create":      create(g, at("b"), ""),
		"create in":   create(g, at("out2/b"), ""),
		"create up":   create(g, at("out/../b"), ""),
		"mkdir":       g.Mkdir(at("new")),
		"make folder": only(g.MakeFolder(at("new"))),
		"remove":      g.Remove(at("a")),
		"remove all":  g.RemoveAll(folder),
		"rename from": g.Rename(at("a"), at("out/a")),
		"rename to":   g.Rename(at("out/x"), at("x")),
		"exists":      only(g.Exists(at("a"))),
		"size":        only(g.WrittenSize(at("a"))),
		"read back":   only(g.ReadBack(at("a"))),
		"empty":       g.RemoveEmpty(at("out2"), 1),
	} {
		if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Flag != "--allow-write" ||
			!strings.HasPrefix(err.Error(), "writing "+folder) {
			t.Errorf("%s: error %v, want a refusal", name, err)
		}
	}
	if diff := cmp.Diff([]string{"a", "out/", "out/x", "out2/", "out2/x"}, list(t, folder)); diff != "" {
		t.Errorf("the folder changed (-want +got):\n%s", diff)
	}
}

func only[T any](_ T, err error) error { return err }

func TestWritingInAGrantThatDoesNotExistYet(t *testing.T) {
	folder := tree(t, nil)
	at := func(name string) string { return filepath.Join(folder, name) }
	g := grants(t, folder, nil, []string{"a/b/out"})
	for range 2 { // also after it was removed again
		if there, err := g.Exists(at("a/b/out")); there || err != nil {
			t.Errorf("before: exists %v, %v", there, err)
		}
		made, err := g.MakeFolder(at("a/b/out/in"))
		if made != 4 || err != nil {
			t.Fatalf("made %d folders, %v, want 4", made, err)
		}
		if made, err := g.MakeFolder(at("a/b/out/in")); made != 0 || !errors.Is(err, fs.ErrExist) {
			t.Errorf("again: made %d folders, %v, want fs.ErrExist", made, err)
		}
		if err := create(g, at("a/b/out/in/x"), "text"); err != nil {
			t.Error(err)
		}
		if err := create(g, at("a/b/out/in/x"), "other"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a file that is there: error %v, want fs.ErrExist", err)
		}
		if err := g.Rename(at("a/b/out/in/x"), at("a/b/out/y")); err != nil {
			t.Error(err)
		}
		if text, err := g.ReadBack(at("a/b/out/y")); string(text) != "text" || err != nil {
			t.Errorf("read back %q, %v", text, err)
		}
		if size, err := g.WrittenSize(at("a/b/out/y")); size != 4 || err != nil {
			t.Errorf("size %d, %v, want 4", size, err)
		}
		if err := g.RemoveEmpty(at("a/b/out/in"), 4); err != nil {
			t.Errorf("removing what is empty: %v", err)
		}
		if diff := cmp.Diff([]string{"a/", "a/b/", "a/b/out/", "a/b/out/y"}, list(t, folder)); diff != "" {
			t.Errorf("only the empty folder was to go (-want +got):\n%s", diff)
		}
		if err := errors.Join(g.RemoveAll(at("a/b/out/y")), g.RemoveAll(at("a/b/out/y")), g.RemoveEmpty(at("a/b/out"), 3)); err != nil {
			t.Error(err)
		}
		if left := list(t, folder); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
}

func TestWritingThroughLinks(t *testing.T) {
	outside := tree(t, map[string]string{"keep": "K", "dir/keep": "K"})
	folder := tree(t, map[string]string{
		"in/x": "X", "out-link": "->" + outside, "file-link": "->" + outside + "/keep", "new-link": "->" + outside + "/new",
		"abs": "->HERE/in", "rel": "->in",
	})
	at := func(name string) string { return filepath.Join(folder, name) }
	g := grants(t, folder, nil, []string{"."})
	for name, err := range map[string]error{
		"create":     create(g, at("out-link/new"), ""),
		"mkdir":      g.Mkdir(at("out-link/new")),
		"remove":     g.Remove(at("out-link/keep")),
		"remove all": g.RemoveAll(at("out-link/dir")),
		"rename to":  g.Rename(at("in/x"), at("out-link/x")),
		"rename":     g.Rename(at("out-link/keep"), at("in/keep")),
		"read back":  only(g.ReadBack(at("out-link/keep"))),
	} {
		if err == nil {
			t.Errorf("%s leads out of the grant by a link", name)
		}
	}
	for _, link := range []string{"file-link", "new-link"} {
		if err := create(g, at(link), ""); !errors.Is(err, fs.ErrExist) {
			t.Errorf("creating %s: error %v, want fs.ErrExist", link, err)
		}
		if err := g.RemoveAll(at(link)); err != nil {
			t.Errorf("removing the link %s itself: %v", link, err)
		}
	}
	if err := g.RemoveAll(at("out-link")); err != nil {
		t.Errorf("removing a link to a folder itself: %v", err)
	}
	if diff := cmp.Diff([]string{"dir/", "dir/keep", "keep"}, list(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	for i, link := range []string{"abs", "rel"} {
		name := fmt.Sprintf("%s/%d", link, i)
		if err := errors.Join(create(g, at(name), "1"), g.Rename(at(name), at(name+"-moved"))); err != nil {
			t.Errorf("through the link %s, which stays inside: %v", link, err)
		}
	}
	if diff := cmp.Diff([]string{"abs", "in/", "in/0-moved", "in/1-moved", "in/x", "rel"}, list(t, folder)); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
}

func TestWritingNamesTheReason(t *testing.T) {
	folder := tree(t, map[string]string{"file": "F"})
	at := func(name string) string { return filepath.Join(folder, name) }
	g := grants(t, folder, nil, []string{"."})
	for want, err := range map[string]error{
		"writing " + at("none/x") + ": there is no such file or folder":                 create(g, at("none/x"), ""),
		"writing " + at("file/x") + ": not a directory":                                 create(g, at("file/x"), ""),
		"writing " + at("file") + ": file exists":                                       create(g, at("file"), ""),
		"moving " + at("none") + " to " + at("x") + ": there is no such file or folder": g.Rename(at("none"), at("x")),
		"writing " + at("none") + ": there is no such file or folder":                   g.Remove(at("none")),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error\n     %v\nwant %s", err, want)
		}
	}
}
