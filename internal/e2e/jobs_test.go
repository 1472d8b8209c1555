package e2e_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a job in the folder jobs and how it is run.
type example struct {
	// input is what the job reads, by the file's name.
	input map[string]string
	// steps are command lines, run one after the other in the folder of the input.
	// OUT stands for a folder that the job may write to.
	steps [][]string
	// check looks at what the job prints, for a job that draws numbers at random
	// and so prints something else on the native platform; nil for all others.
	check func(stdout string) error
}

func examples() map[string]example {
	return map[string]example{
		"pi": {
			steps: [][]string{{"7"}},
			check: func(stdout string) error {
				var pi float64
				if _, err := fmt.Sscanf(stdout, "Pi is roughly %f\n", &pi); err != nil || pi < 3.13 || pi > 3.15 {
					return fmt.Errorf("it prints %q, want Pi", stdout)
				}
				return nil
			},
		},
		"wordcount": {
			input: map[string]string{"a.txt": words(1, 20_000), "b.txt": words(2, 9_000), "empty.txt": ""},
			steps: [][]string{{"a.txt", "b.txt", "empty.txt"}, {"empty.txt"}},
		},
		"join": {
			input: map[string]string{"customers": customers(500), "orders": orders(4_000, 600)},
			steps: [][]string{{"customers", "orders"}},
		},
		"sort": {
			steps: [][]string{
				{"gen", "-n", "8000", "-parts", "5", "OUT/records"},
				{"sort", "OUT/records", "OUT/sorted"},
				{"sort", "-parts", "3", "OUT/records", "OUT/sorted3"},
				{"validate", "OUT/sorted"},
				{"validate", "OUT/sorted3"},
			},
		},
		"pagerank": {
			input: map[string]string{"links": links(300)},
			steps: [][]string{{"-iterations", "4", "links"}, {"-iterations", "3", "-gen", "300"}},
		},
		"kmeans": {
			input: map[string]string{"points": points(2_000)},
			steps: [][]string{{"-k", "3", "-iterations", "4", "points"}, {"-iterations", "4", "-gen", "1000"}},
		},
		"logstats": {
			steps: [][]string{{"gen", "-sessions", "300", "OUT/log"}, {"OUT/log"}},
		},
	}
}

// Each job gives the same bytes however it is run, and those that the same
// program gives outside of a sandbox.
func TestJobsGiveTheSameBytes(t *testing.T) {
	// Small partitions, so that there are many tasks.
	always := []string{"run", "--seed", "7", "--allow-write", ".", "--conf", "quern.files.maxPartitionBytes=40k"}
	ways := []struct {
		name   string
		flags  []string
		faulty bool
	}{
		{"one slot", []string{"--master", "local[1]"}, false},
		{"two slots", []string{"--master", "local[2]"}, false},
		{"safepoints everywhere", []string{"--conf", "quern.sandbox.safepointInterval=256"}, false},
		{"failing tasks", []string{"--master", "local[2,4]", "--conf", "quern.test.failTasks=0.3"}, true},
		{"failing tasks and encoded messages", []string{"--master", "local[2,4]", "--conf", "quern.test.failTasks=0.3",
			"--conf", "quern.test.encodeMessages=true"}, true},
	}
	for name, e := range examples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := outcomeOf(t, e, func(dir string, args []string) result {
				return runIn(t, dir, theWorld.native(name), args...)
			})
			var first *outcome
			for _, way := range ways {
				injected := 0
				got := outcomeOf(t, e, func(dir string, args []string) result {
					local := t.TempDir()
					flags := slices.Concat(always, way.flags, []string{"--verbose", "--conf", "quern.local.dir=" + local, theWorld.job(name)})
					r := runIn(t, dir, theWorld.quern(), append(flags, args...)...)
					injected += strings.Count(r.stderr, "quern.test.failTasks")
					if left := filesIn(t, local); len(left) > 0 {
						t.Errorf("%s: %q leaves %q in quern.local.dir", way.name, args, slices.Sorted(maps.Keys(left)))
					}
					return r
				})
				if way.faulty != (injected > 0) {
					t.Errorf("%s: %d tasks failed on purpose", way.name, injected)
				}
				if first == nil {
					first = got
					if e.check != nil {
						for _, stdout := range got.stdout {
							if err := e.check(stdout); err != nil {
								t.Error(err)
							}
						}
					} else if diff := cmp.Diff(native.joined(), got.joined()); diff != "" {
						t.Errorf("on the native platform (-) and in sandboxes (+):\n%s", diff)
					}
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Errorf("with %s (-) and %s (+):\n%s", ways[0].name, way.name, diff)
				}
			}
		})
	}
}

func TestEveryJobHasAnExample(t *testing.T) {
	folders, err := os.ReadDir("../../jobs")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range folders {
		if f.IsDir() {
			names = append(names, f.Name())
		}
	}
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(examples()))); diff != "" {
		t.Errorf("folders in jobs (-) and examples in this test (+):\n%s", diff)
	}
}

// outcome is what the steps of an example leave behind.
type outcome struct {
	stdout []string          // of each step
	files  map[string]string // in OUT
}

// outcomeOf runs the steps in a folder of their own. Each has to succeed.
func outcomeOf(t *testing.T, e example, run func(dir string, args []string) result) *outcome {
	t.Helper()
	dir := t.TempDir()
	for name, text := range e.input {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "OUT"), 0o777); err != nil {
		t.Fatal(err)
	}
	o := new(outcome)
	for _, args := range e.steps {
		r := run(dir, args)
		if r.code != 0 {
			t.Fatalf("%q ends with exit code %d:\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		o.stdout = append(o.stdout, r.stdout)
	}
	o.files = filesIn(t, filepath.Join(dir, "OUT"))
	return o
}

// Equal makes outcomes comparable for cmp.
func (o *outcome) Equal(p *outcome) bool {
	return slices.Equal(o.stdout, p.stdout) && maps.Equal(o.files, p.files)
}

// joined is the outcome with the parts of each output joined: how many there are
// depends on how the input was cut.
func (o *outcome) joined() *outcome {
	j := &outcome{stdout: o.stdout, files: map[string]string{}}
	for _, path := range slices.Sorted(maps.Keys(o.files)) {
		folder, file := filepath.Split(path)
		if strings.HasPrefix(file, "part-") {
			j.files[folder] += o.files[path]
		} else {
			j.files[path] = o.files[path]
		}
	}
	return j
}

// filesIn are the files below a folder with their contents, by their paths.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The inputs are random but always the same.

func words(seed uint64, n int) string {
	random := rand.New(rand.NewPCG(seed, 0))
	var b bytes.Buffer
	for range n {
		fmt.Fprintf(&b, "w%d%s", int(random.ExpFloat64()*100), []string{" ", "  ", "\t", "\n", "\r\n"}[random.IntN(5)])
	}
	return b.String()
}

func customers(n int) string {
	var b bytes.Buffer
	for id := range n {
		fmt.Fprintf(&b, "%d,customer %d of %[2]d\n", (id*7919)%n, id)
	}
	return b.String()
}

func orders(n, customers int) string {
	random := rand.New(rand.NewPCG(3, 0))
	var b bytes.Buffer
	for id := range n {
		fmt.Fprintf(&b, "%d,%d,%d\n", id, random.IntN(customers), random.IntN(100_000))
	}
	return b.String()
}

func links(pages int) string {
	random := rand.New(rand.NewPCG(4, 0))
	b := bytes.NewBufferString("# from\tto\n")
	for range 12 * pages {
		x := random.Float64()
		fmt.Fprintf(b, "%d\t%d\n", random.IntN(pages), int(x*x*float64(pages)))
	}
	return b.String()
}

func points(n int) string {
	random := rand.New(rand.NewPCG(5, 0))
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%g %g %g\n", random.NormFloat64(), float64(5*(i%3))+random.NormFloat64(), random.NormFloat64())
	}
	return b.String()
}
