package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/sdk/quern"
)

// writeText makes files of random words, frequent ones and rare ones, and
// answers their whole text.
func writeText(t *testing.T, dir string) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var whole strings.Builder
	for file := range 5 {
		var b strings.Builder
		for range 2000 {
			b.WriteString("word" + fmt.Sprint(int(random.ExpFloat64()*20)))
			b.WriteString([]string{" ", "\t", "\n", "  ", "\r\n", "\n\n"}[random.IntN(6)])
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", file)), []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		whole.WriteString(b.String() + "\n")
	}
	return whole.String()
}

func TestTopWordsAgreeWithAMap(t *testing.T) {
	dir := t.TempDir()
	counts := map[string]int64{}
	for _, w := range strings.Fields(writeText(t, dir)) {
		counts[w]++
	}
	want := []quern.Pair[string, int64]{}
	for word, n := range counts {
		want = append(want, quern.Pair[string, int64]{Key: word, Value: n})
	}
	sort.Slice(want, func(i, j int) bool {
		if want[i].Value != want[j].Value {
			return want[i].Value > want[j].Value
		}
		return want[i].Key < want[j].Key
	})
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 10, len(want) + 1} {
		got, err := topWords(ctx, []string{dir}, n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[:min(n, len(want))], append([]quern.Pair[string, int64]{}, got...)); diff != "" {
			t.Errorf("top %d (-want +got):\n%s", n, diff)
		}
	}
}
