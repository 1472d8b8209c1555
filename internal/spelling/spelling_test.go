package spelling

import "testing"

func TestNearestFindsTheWordThatWasMeant(t *testing.T) {
	commands := []string{"run", "build", "new", "inspect", "version", "completion", "help"}
	for word, want := range map[string]string{
		"rnu":        "run",     // swap
		"biuld":      "build",   // swap
		"buidl":      "build",   // swap at the end
		"insepct":    "inspect", // swap
		"verson":     "version", // missing letter
		"RUN":        "run",     // case
		"helpp":      "help",    // letter too many
		"frobnicate": "",
		"":           "",
		"submit":     "",
	} {
		if got := Nearest(word, commands); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistanceIsSymmetricAndCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"abc", "acb", 1}, {"abc", "xbc", 1},
		{"abcd", "abd", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
