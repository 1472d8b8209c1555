package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What cannot be run is refused in one line, with exit code 2, within seconds.
func TestWhatIsNotAJob(t *testing.T) {
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	job := read(theWorld.guest("faults"))
	damaged := append([]byte{}, job...)
	for i := len(job) / 2; i < len(job)/2+64; i++ {
		damaged[i] ^= 0xff
	}
	for name, c := range map[string]struct {
		file  []byte
		flags []string
		want  string
	}{
		"a text":        {[]byte("The quern is older than the mill.\n"), nil, "is not WebAssembly"},
		"nothing":       {nil, nil, "the file is empty"},
		"a native one":  {read(theWorld.native("pi")), nil, "is a native program"},
		"no job":        {read(theWorld.guest("plain")), nil, "not a Quern job: it does not use a Quern SDK ("},
		"an import":     {importing("env", "evil"), nil, "not a Quern job: it imports env.evil"},
		"truncated":     {job[:len(job)/2], nil, "the file is cut off"},
		"cut short":     {job[:len(job)-1], nil, "the file is cut off"},
		"a header only": {job[:8], nil, "not a Quern job"},
		"half a header": {job[:6], nil, "the file is cut off"},
		"damaged":       {damaged, nil, "section code, function "},
		"a bomb":        {exiting(0, bomb(15_000, 15_000)), nil, "would take too long to compile"},
		"large, for a second": {exiting(0, slices.Repeat([][]byte{long(7 << 20)}, 4)...), []string{"--conf", "quern.compile.cpu=1s"},
			"compiling the module took more than 1s of processor time: it is too large, or made to be expensive; if it is neither, " +
				"raise --conf quern.compile.cpu"},
		"large, for 64 MiB": {exiting(0, long(7<<20)), []string{"--conf", "quern.compile.memory=64m"},
			"compiling the module took more than 64 MiB of memory: it is too large, or made to be expensive; if it is neither, " +
				"raise --conf quern.compile.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "job.wasm"), c.file, 0o666); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			r := runIn(t, dir, theWorld.quern(), append(append([]string{"run"}, c.flags...), "job.wasm")...)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it takes %v to refuse it", took)
			}
			if r.code != 2 || r.stdout != "" {
				t.Errorf("exit code %d, stdout %q", r.code, r.stdout)
			}
			if !strings.HasPrefix(r.stderr, "quern run: job.wasm: ") || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, c.want) {
				t.Errorf("stderr is %q, want one line with %q", r.stderr, c.want)
			}
		})
	}
	t.Run("small ones of the kind", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "job.wasm"), exiting(7, bomb(50, 50), long(1000)), 0o666); err != nil {
			t.Fatal(err)
		}
		if r := runIn(t, dir, theWorld.quern(), "run", "job.wasm"); r != (result{code: 7}) {
			t.Errorf("%+v, want exit code 7", r)
		}
	})
}
