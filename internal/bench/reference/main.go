// Command reference counts words as jobs/wordcount does, but natively, in one
// thread, without Quern: what its result and its speed are compared with.
//
//	go run ./internal/bench/reference FOLDER
//
// It reads the same files: those in FOLDER and its folders, without names that
// begin with "_" or ".", those that end in .gz and .zst decompressed.
package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: reference FOLDER")
	}
	counts := make(map[string]int64)
	err := filepath.WalkDir(os.Args[1], func(path string, entry fs.DirEntry, err error) error {
		hidden := path != os.Args[1] && strings.ContainsAny(entry.Name()[:1], "_.")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		}
		return count(path, counts)
	})
	if err != nil {
		log.Fatal(err)
	}
	type word struct {
		text string
		n    int64
	}
	words := make([]word, 0, len(counts))
	for text, n := range counts {
		words = append(words, word{text, n})
	}
	slices.SortFunc(words, func(a, b word) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.text, b.text))
	})
	for _, w := range words[:min(10, len(words))] {
		fmt.Println(w.n, w.text)
	}
}

func count(path string, counts map[string]int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	switch filepath.Ext(path) {
	case ".gz":
		r, err = gzip.NewReader(f)
	case ".zst":
		r, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 1<<30)
	for lines.Scan() {
		for word := range strings.FieldsSeq(lines.Text()) {
			counts[word]++
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
