package quern

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTableNumbersKeysInTheOrderInWhichTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few letters and lengths around a word's, so that keys meet.
		keys := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00")), 0, 20, 20), 0, 2000).Draw(t, "keys")
		table := newTable()
		for range 2 {
			numbers := map[string]int{}
			for _, k := range keys {
				want, there := numbers[k]
				if !there {
					want = len(numbers)
					numbers[k] = want
				}
				before := table.len()
				got := table.find([]byte(k))
				found := got < before
				if got != want || found != there {
					t.Fatalf("%q is number %d (found %v), not %d (%v)", k, got, found, want, there)
				}
				if string(table.key(got)) != k {
					t.Fatalf("number %d is %q, not %q", got, table.key(got), k)
				}
			}
			table.reset()
		}
	})
}

func TestFieldsAreThoseOfTheStandardLibrary(t *testing.T) {
	space := rapid.SampledFrom([]string{" ", "  ", "\t", "\r\n", "\u00a0", "\u2003", "\x1f", "\x00", "é", "\xff", "a", "word", "eightchr",
		"longerthaneight", "\u0085", "~", "\x7f"})
	rapid.Check(t, func(t *rapid.T) {
		checkFields(t, strings.Join(rapid.SliceOf(space).Draw(t, "parts"), ""))
	})
}

func FuzzFields(f *testing.F) {
	f.Add(" a b\u2003c ")
	f.Add("\xff\xfe word")
	f.Fuzz(func(t *testing.T, s string) { checkFields(t, s) })
}

func checkFields(t interface{ Fatalf(string, ...any) }, s string) {
	got := slices.Collect(func(yield func(string) bool) { yieldFields(s, yield) })
	if diff := cmp.Diff(strings.Fields(s), append([]string{}, got...)); diff != "" {
		t.Fatalf("fields of %q (-strings.Fields +yieldFields):\n%s", s, diff)
	}
	if len(got) > 0 {
		first := ""
		if yieldFields(s, func(w string) bool { first = w; return false }) || first != got[0] {
			t.Fatalf("fields of %q do not stop after the first", s)
		}
	}
}
