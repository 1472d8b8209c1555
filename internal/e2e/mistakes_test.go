package e2e_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is wrong with a job's input or command line is said on standard error,
// and the exit code tells.
func TestJobsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		job    string
		args   []string
		code   int
		stdout string
		stderr []string
	}{
		{"sort", []string{"validate", "unsorted"}, 1, "Records: 3\n",
			[]string{"sort: 1 records are out of order, the first one is record 2\n"}},
		{"sort", []string{"merge"}, 1, "", []string{"usage: sort gen"}},
		{"sort", []string{"gen", "-n", "many", "OUT"}, 2, "", []string{`invalid value "many"`}},
		{"sort", []string{"sort", "missing", "OUT"}, 1, "", []string{"textFile at main.go:", "missing"}},
		{"pagerank", []string{"unsorted"}, 1, "", []string{`line "b" has 1 fields, not the 2 pages of a link`, "main.go:"}},
		{"pagerank", nil, 2, "", []string{"usage: pagerank"}},
		{"kmeans", []string{"unsorted"}, 1, "", []string{`line "b": "b" is not a coordinate`, "main.go:"}},
		{"join", []string{"unsorted", "unsorted"}, 1, "", []string{`"" is not a number`}},
		{"logstats", []string{"unsorted"}, 0, "requests 0\nmalformed lines 3\n", nil},
	} {
		t.Run(c.job+" "+strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "unsorted"), []byte("b\nc\na\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			args := slices.Concat([]string{"run", "--master", "local[1]", "--allow-write", ".", theWorld.job(c.job)}, c.args)
			r := runIn(t, dir, theWorld.quern(), args...)
			if r.code != c.code || !strings.HasPrefix(r.stdout, c.stdout) || c.stdout == "" && r.stdout != "" {
				t.Errorf("it prints %q and ends with exit code %d, want %q and %d", r.stdout, r.code, c.stdout, c.code)
			}
			for _, want := range c.stderr {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("it does not say %q but\n%s", want, r.stderr)
				}
			}
			if files := slices.Sorted(maps.Keys(filesIn(t, dir))); len(files) != 1 {
				t.Errorf("there are %q now, want the input alone", files)
			}
		})
	}
}
