package e2e_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Random pipelines answer what the same computation on slices does, which they
// compare themselves, and answer it in the same bytes however they are run.
func TestRandomPipelines(t *testing.T) {
	t.Parallel()
	first := ""
	for _, flags := range [][]string{
		{"--master", "local[2]"},
		{"--master", "local[1]", "--executor-memory", "24m", "--conf", "quern.shuffle.compression.codec=zstd"},
		{"--master", "local[2,4]", "--conf", "quern.test.failTasks=0.3", "--conf", "quern.test.encodeMessages=true"},
	} {
		r := runGuest(t, t.TempDir(), append(flags, "--allow-write", ".", "--seed", "7"), "pipelines", "-save", "out", "0", "30")
		if r.code != 0 {
			// Failures on purpose come before what matters.
			t.Fatalf("%q: exit code %d:\n%s", flags, r.code, r.stderr[max(0, len(r.stderr)-4000):])
		}
		if lines := strings.Count(r.stdout, "\n"); lines != 30 {
			t.Errorf("%q: %d lines, want one for each pipeline", flags, lines)
		}
		if first == "" {
			first = r.stdout
		}
		if diff := cmp.Diff(first, r.stdout); diff != "" {
			t.Errorf("with %q the answers are others:\n%s", flags, diff)
		}
	}
}
