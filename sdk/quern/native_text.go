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

// A text source is planned by the engine's rule (see engine/source), so that a
// job has the same partitions natively: files are taken in order, cut where a
// partition is full, and share a partition when they are small.

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
	if len(d.Paths) == 0 {
		return nil, badArgument("reading text: no path was given")
	}
	minPartitions := d.MinPartitions
	if minPartitions <= 0 {
		minPartitions = 2
	}
	return dealOut(files, int64(minPartitions), maxBytes), nil
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

// findFiles lists what a path of the user stands for, in the order of the paths'
// bytes: a file, all files in a folder and its folders, or all that a pattern
// matches. * and ? match within a name, [a-z] one character of it, {a,b}
// alternatives, and a name ** any number of folders. Names that begin with "_"
// or "." are left out unless the path asks for them.
func findFiles(path string) ([]textPiece, error) {
	if path == "" {
		return nil, badArgument("reading text: the path is empty")
	}
	if isURL(path) {
		return nil, badArgument("reading %s: this version reads and writes local files only: give a path", path)
	}
	given := path
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("reading text: %w", err)
	}
	var files []textPiece
	if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[{") {
		err = matchAll(&files, path)
	} else { // a name with brackets in it is a name first
		err = addFiles(&files, path, nil)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(given, ","):
		return nil, fmt.Errorf("%w (for several paths there is TextFiles)", err)
	case err != nil:
		return nil, err
	case len(files) == 0:
		return nil, fmt.Errorf("reading %s: no file matches; names that begin with _ or . do not count", path)
	}
	slices.SortFunc(files, func(a, b textPiece) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(files), nil
}

// isURL says whether a path looks like s3://bucket/key or file:///name.
func isURL(path string) bool {
	scheme, _, found := strings.Cut(path, "://")
	return found && scheme != "" && !strings.ContainsAny(scheme, `/\`)
}

// addFiles adds a file, or all files in a folder and its folders. Links are
// followed, but not back to one of the folders above.
func addFiles(files *[]textPiece, path string, above []fs.FileInfo) error {
	info, err := os.Stat(path)
	if err != nil {
		return readingError(path, err)
	}
	if !info.IsDir() {
		return addFile(files, path, info)
	}
	if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return readingError(path, err)
	}
	above = append(above, info)
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		if err := addFiles(files, filepath.Join(path, e.Name()), above); err != nil {
			return err
		}
	}
	return nil
}

func addFile(files *[]textPiece, path string, info fs.FileInfo) error {
	suffix := strings.ToLower(filepath.Ext(path))
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("reading %s: it is neither a file nor a folder", path)
	case suffix == ".zst":
		return fmt.Errorf("reading %s: zstd is not available natively, "+
			"because the SDK uses the standard library alone: use quern run, or gzip", path)
	}
	*files = append(*files, textPiece{path: path, length: info.Size(), gzip: suffix == ".gz"})
	return nil
}

// readingError names the path once.
func readingError(path string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Errorf("reading %s: %w", path, err)
}

func hidden(name string) bool { return name[0] == '_' || name[0] == '.' }

// matchAll adds the files that a pattern matches.
func matchAll(files *[]textPiece, pattern string) error {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return readingError(pattern, err)
	}
	root := filepath.VolumeName(pattern) + string(filepath.Separator)
	for _, p := range alternatives(pattern[len(root):]) {
		if err := match(files, root, strings.Split(p, string(filepath.Separator))); err != nil {
			return err
		}
	}
	return nil
}

// alternatives writes a pattern out for each choice of its {a,b}.
func alternatives(pattern string) []string {
	before, rest, open := strings.Cut(pattern, "{")
	choices, after, shut := strings.Cut(rest, "}")
	if !open || !shut {
		return []string{pattern}
	}
	var all []string
	for choice := range strings.SplitSeq(choices, ",") {
		all = append(all, alternatives(before+choice+after)...)
	}
	return all
}

// match adds what the parts of a pattern match in folder, which exists. What is
// missing matches nothing.
func match(files *[]textPiece, folder string, parts []string) error {
	if len(parts) == 0 {
		return addFiles(files, folder, nil)
	}
	part, rest := parts[0], parts[1:]
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return err
	}
	if !strings.ContainsAny(part, "*?[") {
		path := filepath.Join(folder, part)
		if _, err := os.Stat(path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return readingError(path, err)
		}
		return match(files, path, rest)
	}
	if part == "**" {
		if err := match(files, folder, rest); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return readingError(folder, err)
	}
	for _, e := range entries {
		name, then := e.Name(), rest
		matches, _ := filepath.Match(part, name) // the pattern has been checked
		if part == "**" {
			matches, then = e.IsDir(), parts // any number of folders
		}
		if !matches || hidden(name) && part[0] != name[0] {
			continue
		}
		if err := match(files, filepath.Join(folder, name), then); err != nil {
			return err
		}
	}
	return nil
}
