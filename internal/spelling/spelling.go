// Package spelling finds the word that was meant by a misspelt one, for error
// messages that suggest it.
package spelling

import "strings"

// Nearest returns the candidate that is nearest to word, "" when none is near:
// within a third of the word's length in bytes, and at least within 1. Case
// does not count.
func Nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDistance := "", 1+max(1, len(word)/3)
	for _, candidate := range candidates {
		if d := distance(word, strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	// Three rows of the usual table: two back (for swaps), the last, this one.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			substitution := last[j-1]
			if a[i-1] != b[j-1] {
				substitution++
			}
			row[j] = min(last[j]+1, row[j-1]+1, substitution)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
