package quern

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// benchText is lines of words in which a few are frequent and many are rare, as
// in real text, about n bytes long.
func benchText(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 4, 1<<15)
	letters := "etaoinshrdlucmfwypvbgkjqxz"
	words := make([]string, 1<<15+1)
	for i := range words {
		var b strings.Builder
		for range 2 + random.IntN(9) {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		words[i] = b.String()
	}
	var lines []string
	for size := 0; size < n; {
		var b strings.Builder
		for range 1 + random.IntN(15) {
			b.WriteString(words[zipf.Uint64()])
			b.WriteByte(' ')
		}
		lines = append(lines, b.String())
		size += b.Len()
	}
	return lines
}

// benchWriter drops what is written.
func benchWriter() *shuffleWriter {
	return &shuffleWriter{portWriter: &portWriter{write: func([]byte) {}}}
}

const benchBytes = 8 << 20

// BenchmarkWordCountMap is the map side of a word count without the host: split,
// pair, combine, encode.
func BenchmarkWordCountMap(b *testing.B) {
	lines := benchText(benchBytes)
	k, _ := keyCodecOf[string](false)
	c, _ := codecOf[int64]()
	b.Run("Quern", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			words := func(yield func(string) bool) {
				for _, l := range lines {
					yieldFields(l, yield)
				}
			}
			pairs := func(yield func(Pair[string, int64]) bool) {
				words(func(w string) bool { return yield(Pair[string, int64]{w, 1}) })
			}
			writeCombined(pairs, benchWriter(), combiner[int64, int64]{
				create: func(v int64) int64 { return v },
				add:    func(a, b int64) int64 { return a + b },
			}, k, c)
		}
	})
	b.Run("SplitOnly", func(b *testing.B) {
		b.SetBytes(benchBytes)
		n := 0
		for b.Loop() {
			for _, l := range lines {
				n += len(strings.Fields(l))
			}
		}
	})
	b.Run("GoMap", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			m := map[string]int64{}
			for _, l := range lines {
				for _, w := range strings.Fields(l) {
					m[w]++
				}
			}
		}
	})
}
