package sdk

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestModuleHasTheSourcesAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	if err := WriteModule(dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{"go.mod"}
	for _, pattern := range []string{"abi/*.go", "quern/*.go"} {
		sources, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range sources {
			if !strings.HasSuffix(name, "_test.go") {
				want = append(want, "sdk/"+filepath.ToSlash(name))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the module has %q, want %q", got, want)
	}

	for _, name := range want[1:] {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		original, err := os.ReadFile(strings.TrimPrefix(name, "sdk/"))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(original) {
			t.Errorf("%s is not the source", name)
		}
	}

	// Writing it again, as over an older one, is fine.
	if err := WriteModule(dir); err != nil {
		t.Error(err)
	}
}
