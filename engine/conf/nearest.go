package conf

import (
	"strings"

	"github.com/quern-project/quern/internal/spelling"
)

// nearest returns the key that was most likely meant by an unknown one, or "".
func nearest(unknown string) string {
	// Keys of Spark are ours under another name, and the first word is easily
	// forgotten.
	words := strings.TrimSpace(unknown)
	for _, first := range []string{"spark.", "quern."} {
		words = strings.TrimPrefix(words, first)
	}
	var candidates []string
	for _, k := range keys() {
		candidates = append(candidates, strings.TrimPrefix(k.name, "quern."))
	}
	if near := spelling.Nearest(words, candidates); near != "" {
		return "quern." + near
	}
	return ""
}
