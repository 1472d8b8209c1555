//go:build !wasip1

package quern

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quern-project/quern/sdk/abi"
)

// A text source is planned by the engine's rule, so that a job has the same
// partitions natively: files are taken in order, cut where a partition is full,
// and share a partition when they are small.

// textPiece is a range of one file. A line belongs to the piece in which its
// first byte lies. A compressed file is always one piece.
type textPiece struct {
	path           string
	offset, length int64
	gzip           bool
}

// planText finds the files of a source and deals them out to partitions, of
// which there is at least one. Partitions aim at maxBytes or, if that gives
// fewer than MinPartitions, at less.
func planText(d *abi.TextDesc, maxBytes int64) ([][]textPiece, error) {
	var files []textPiece
	for _, path := range d.Paths {
		found, err := findFiles(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, badArgument("read text: no path is given")
	}
	return dealOut(files, int64(max(d.MinPartitions, 2)), maxBytes), nil
}

// dealOut cuts files into partitions.
func dealOut(files []textPiece, minPartitions, maxBytes int64) [][]textPiece {
	var total int64
	for _, f := range files {
		total += f.length
	}
	target := max(1, min(maxBytes, (total+minPartitions-1)/minPartitions))
	var (
		all     [][]textPiece
		current []textPiece
		size    int64
	)
	for _, f := range files {
		for f.length > 0 {
			piece := f
			if !f.gzip {
				piece.length = min(f.length, target-size)
			}
			f.offset += piece.length
			f.length -= piece.length
			current = append(current, piece)
			if size += piece.length; size >= target {
				all, current, size = append(all, current), nil, 0
			}
		}
	}
	if len(current) > 0 || len(all) == 0 {
		all = append(all, current)
	}
	return all
}

// findFiles lists what a path of the user stands for: a file, the files of a
// folder, or what a pattern matches, in lexical order. * and ? match within a
// name, [a-z] one character of it, and a name ** any number of folders. Hidden
// files, whose names begin with "_" or ".", are left out unless they are asked
// for.
func findFiles(path string) ([]textPiece, error) {
	names := []string{path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, `*?[`) {
		if names, err = expand(path); err != nil {
			return nil, fmt.Errorf("read text from %s: %w", path, err)
		}
	}
	var files []textPiece
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("read text from %s: %w", path, err)
		}
		if !info.IsDir() {
			if files, err = addFile(files, name, info); err != nil {
				return nil, err
			}
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, fmt.Errorf("read text from %s: %w", path, err)
		}
		for _, entry := range entries {
			in := filepath.Join(name, entry.Name())
			if hidden(entry.Name()) {
				continue
			}
			info, err := os.Stat(in)
			if err != nil {
				return nil, fmt.Errorf("read text from %s: %w", path, err)
			}
			if info.IsDir() {
				continue
			}
			if files, err = addFile(files, in, info); err != nil {
				return nil, err
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read text from %s: no file matches", path)
	}
	return files, nil
}

func hidden(name string) bool { return name[0] == '_' || name[0] == '.' }

func addFile(files []textPiece, name string, info fs.FileInfo) ([]textPiece, error) {
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read text from %s: it is not a regular file", name)
	}
	suffix := strings.ToLower(filepath.Ext(name))
	if suffix == ".zst" {
		return nil, fmt.Errorf("read text from %s: zstd is not available natively, "+
			"because the SDK uses the standard library alone: use quern run, or gzip", name)
	}
	return append(files, textPiece{path: name, length: info.Size(), gzip: suffix == ".gz"}), nil
}

// expand lists the names that match a pattern, in lexical order.
func expand(pattern string) ([]string, error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, err
	}
	pattern = filepath.Clean(pattern)
	root := filepath.VolumeName(pattern)
	rest := pattern[len(root):]
	if strings.HasPrefix(rest, string(filepath.Separator)) {
		root += string(filepath.Separator)
		rest = rest[1:]
	}
	found := map[string]bool{}
	match(root, strings.Split(rest, string(filepath.Separator)), found)
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// match adds what the parts of a pattern match below folder. Folders that
// cannot be read match nothing, as in a shell.
func match(folder string, parts []string, found map[string]bool) {
	if len(parts) == 0 {
		found[folder] = true
		return
	}
	part := parts[0]
	if !strings.ContainsAny(part, `*?[`) {
		name := filepath.Join(folder, part)
		if _, err := os.Stat(name); err == nil {
			match(name, parts[1:], found)
		}
		return
	}
	if part == "**" {
		match(folder, parts[1:], found)
	}
	if folder == "" {
		folder = "."
	}
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		name := filepath.Join(folder, entry.Name())
		if hidden(entry.Name()) && part[0] != entry.Name()[0] {
			continue
		}
		if part == "**" {
			if entry.IsDir() {
				match(name, parts, found)
			}
		} else if ok, _ := filepath.Match(part, entry.Name()); ok {
			match(name, parts[1:], found)
		}
	}
}
