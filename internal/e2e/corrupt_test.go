package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// flip changes a bit of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(flipped(string(b))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cache is a folder for compiled modules with those of jobs that exit with the
// codes 1, 2 and so on.
type cache struct {
	t       *testing.T
	dir     string // with the modules exit1.wasm and so on
	entries []string
}

func newCache(t *testing.T, jobs int) *cache {
	t.Helper()
	files := map[string]string{}
	for n := range jobs {
		files[fmt.Sprintf("exit%d.wasm", n+1)] = string(exiting(byte(n + 1)))
	}
	c := &cache{t, folder(t, files), nil}
	known := map[string]bool{}
	for n := range jobs {
		c.run(n+1, "")
		dirs, err := filepath.Glob(filepath.Join(c.dir, "cache", "modules", "*", "mac"))
		if err != nil || len(dirs) != n+1 {
			t.Fatalf("after %d runs the cache has the entries %q, %v", n+1, dirs, err)
		}
		for _, mac := range dirs {
			if !known[mac] {
				known[mac] = true
				c.entries = append(c.entries, filepath.Dir(mac))
			}
		}
	}
	return c
}

// run runs a job, which must exit with its code, and compares what is said.
func (c *cache) run(code int, stderr string) {
	c.t.Helper()
	r := runIn(c.t, c.dir, theWorld.quern(), "run", "--conf", "quern.cache.dir=cache", fmt.Sprintf("exit%d.wasm", code))
	if r.code != code || r.stdout != "" {
		c.t.Errorf("exit code %d, want %d; stdout %q", r.code, code, r.stdout)
	}
	compare(c.t, "stderr", stderr, strings.ReplaceAll(r.stderr, c.dir+"/", ""))
}

const (
	notUsed  = "WARN the cached program in %s is not used and made anew: %s\n"
	notOurs  = "its authentication code is wrong: it was damaged, or not made by this user"
	anywhere = "cache/modules/"
)

// Machine code that this user's quern has not made of this very module is never
// executed.
func TestDamagedAndPlantedCompiledModules(t *testing.T) {
	inCache := func(c *cache, entry int) string {
		return anywhere + filepath.Base(c.entries[entry])
	}
	copyOver := func(t *testing.T, from, to string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("each file, damaged", func(t *testing.T) {
		t.Parallel()
		c := newCache(t, 1)
		c.run(1, "")
		damaged := 0
		for _, pattern := range []string{"mac", "meta.json", "module.wasm", "code/*/*"} {
			found, err := filepath.Glob(filepath.Join(c.entries[0], pattern))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %q, %v", pattern, found, err)
			}
			flip(t, found[0])
			c.run(1, fmt.Sprintf(notUsed, inCache(c, 0), notOurs))
			c.run(1, "")
			damaged++
		}
		if n := len(filesIn(t, c.entries[0])); n != damaged {
			t.Errorf("an entry has %d files, %d of which were damaged", n, damaged)
		}
	})
	t.Run("another module's, planted", func(t *testing.T) {
		t.Parallel()
		c := newCache(t, 2)
		copyOver(t, c.entries[1], c.entries[0])
		c.run(1, fmt.Sprintf(notUsed, inCache(c, 0), notOurs))
		c.run(1, "")
		c.run(2, "")
	})
	t.Run("another user's, planted", func(t *testing.T) {
		t.Parallel()
		mine, theirs := newCache(t, 1), newCache(t, 1)
		copyOver(t, theirs.entries[0], mine.entries[0])
		mine.run(1, fmt.Sprintf(notUsed, inCache(mine, 0), notOurs))
		mine.run(1, "")
	})
	t.Run("a folder that others may write to", func(t *testing.T) {
		t.Parallel()
		c := newCache(t, 1)
		modules := filepath.Join(c.dir, "cache", "modules")
		if err := os.Chmod(modules, 0o777); err != nil {
			t.Fatal(err)
		}
		r := runIn(t, c.dir, theWorld.quern(), "run", "--conf", "quern.cache.dir="+filepath.Join(c.dir, "cache"), "exit1.wasm")
		if r.code != 1 || !strings.HasPrefix(r.stderr, "quern run: ") || !strings.Contains(r.stderr, "run chmod 700 "+modules) ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A shuffle file that is damaged between two jobs is noticed by the second one's
// tasks, and what it held is computed again.
func TestDamagedShuffleFiles(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string)
		why    string
	}{
		"a flipped bit": {flip, "the file is corrupted"},
		"the end is missing": {func(t *testing.T, path string) {
			if err := os.Truncate(path, 1000); err != nil {
				t.Fatal(err)
			}
		}, "it is truncated"},
		"a file is missing": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, []string{"--master", "local[2]", "--seed", "1"}, "faults", "reread")
			first := s.line()
			found, err := filepath.Glob(filepath.Join(s.local, "quern-*", "shuffle_*_2_*.data"))
			if err != nil || len(found) != 1 {
				t.Fatalf("map partition 2 has the files %q, %v", found, err)
			}
			c.damage(t, found[0])
			fmt.Fprintln(s.stdin)
			second := s.line()
			fmt.Fprintln(s.stdin)
			if code := s.end(); code != 0 || first != second || !strings.HasPrefix(first, "1024 true ") {
				t.Errorf("exit code %d; it prints %q, then %q; stderr: %s", code, first, second, s.stderr)
			}
			said := regexp.MustCompile(`(?m)^WARN shuffle data is lost stage=3.0 partition=\d ` +
				`cause="shuffle 1: partition \d of the output of map 2 \(task \d+\) is lost: ` + regexp.QuoteMeta(found[0]) + `.*` + c.why + `.*: the map task must run again"$`)
			if !said.MatchString(s.stderr.String()) {
				t.Errorf("it does not say %s but %s", said, s.stderr)
			}
		})
	}
}
