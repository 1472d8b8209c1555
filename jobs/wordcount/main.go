// Command wordcount prints the ten most frequent words of text files, each with
// its count.
//
//	quern run jobs/wordcount PATH...
//
// A path is a file, a folder or a pattern such as 'logs/**/*.gz'. Words are what
// stands between white space. Of words that are equally frequent, those first in
// the order of their bytes are taken.
package main

import (
	"cmp"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: wordcount PATH...")
	}
	ctx, err := quern.NewContext(quern.AppName("word count"))
	if err != nil {
		log.Fatal(err)
	}
	top, err := topWords(ctx, os.Args[1:], 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range top {
		fmt.Println(w.Value, w.Key)
	}
}

func topWords(ctx *quern.Context, paths []string, n int) ([]quern.Pair[string, int64], error) {
	return ctx.TextFiles(paths).
		FlatMapSeq(strings.FieldsSeq).
		MapToPair(func(word string) (string, int64) { return word, 1 }).
		ReduceByKey(func(a, b int64) int64 { return a + b }).
		Top(n, func(a, b quern.Pair[string, int64]) int {
			return cmp.Or(cmp.Compare(a.Value, b.Value), strings.Compare(b.Key, a.Key))
		})
}
