package conf

import "strings"

// nearest returns the key that was most likely meant by an unknown one, or "".
func nearest(unknown string) string {
	meant := strings.ToLower(strings.TrimSpace(unknown))
	if rest, ok := strings.CutPrefix(meant, "spark."); ok {
		meant = "quern." + rest
	} else if !strings.HasPrefix(meant, "quern.") {
		meant = "quern." + meant
	}
	best, bestDistance := "", max(3, len(meant)/4)+1
	for _, k := range keys() {
		if d := editDistance(meant, strings.ToLower(k.name)); d < bestDistance {
			best, bestDistance = k.name, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			d := min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
