// Command NAME counts the words of text files and prints the most frequent
// ones.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "NAME:", err)
		os.Exit(1)
	}
}

func run(paths []string) error {
	if len(paths) == 0 {
		return errors.New("give it files, folders or globs to read: quern run . input.txt")
	}
	ctx, err := quern.NewContext(quern.AppName("NAME"))
	if err != nil {
		return err
	}
	top, err := topWords(ctx, paths, 10)
	if err != nil {
		return err
	}
	for _, word := range top {
		fmt.Printf("%7d %s\n", word.Value, word.Key)
	}
	return nil
}

// topWords returns the n most frequent words, the most frequent one first and
// words that are equally frequent in the order of the alphabet.
func topWords(ctx *quern.Context, paths []string, n int) ([]quern.Pair[string, int64], error) {
	return ctx.TextFiles(paths).
		FlatMap(words).
		MapToPair(func(word string) (string, int64) { return word, 1 }).
		ReduceByKey(func(a, b int64) int64 { return a + b }).
		Top(n, func(a, b quern.Pair[string, int64]) int {
			return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Key, a.Key))
		})
}

// words cuts a line into words in lower case.
func words(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
