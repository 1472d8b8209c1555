package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// Options are the settings of a plan.
type Options struct {
	// TargetBytes is the most bytes of a partition of files that can be cut,
	// >= 1 (quern.files.maxPartitionBytes).
	TargetBytes int64
}

// maxPartitions bounds what a source may ask the driver to keep track of.
const maxPartitions = 1 << 20

// defaultMinPartitions is Spark's: where nothing is asked for, both of two cores
// have something to do.
const defaultMinPartitions = 2

// Plan finds the files of a source and deals them out to partitions, at least
// one; see the package comment for the rule. It answers the errors of package
// files for what cannot be read, and an [EmptyError] for a path that stands for
// no file.
func Plan(g *files.Grants, d abi.TextDesc, o Options) ([][]msg.Piece, error) {
	if len(d.Paths) == 0 {
		return nil, errors.New("reading text: no path was given")
	}
	var all []files.File
	for _, path := range d.Paths {
		found, err := find(g, path)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	var total int64
	for _, f := range all {
		total += f.Size
	}
	minPartitions := int64(d.MinPartitions)
	if minPartitions <= 0 {
		minPartitions = defaultMinPartitions
	}
	if minPartitions > maxPartitions {
		return nil, fmt.Errorf("reading text from %s: %d partitions are asked for, and at most %d are possible",
			strings.Join(d.Paths, ", "), minPartitions, maxPartitions)
	}
	target := max(1, min(o.TargetBytes, (total+minPartitions-1)/minPartitions))
	if total/target > maxPartitions {
		return nil, fmt.Errorf("reading text from %s: %d bytes are more than %d partitions of %d bytes: "+
			"raise quern.files.maxPartitionBytes", strings.Join(d.Paths, ", "), total, maxPartitions, target)
	}
	return deal(all, target), nil
}

// deal cuts files into partitions of target bytes.
func deal(all []files.File, target int64) [][]msg.Piece {
	var (
		partitions [][]msg.Piece
		current    []msg.Piece
		room       = target
	)
	for _, f := range all {
		whole := compressionOf(f.Path) != plain
		for offset := int64(0); offset < f.Size; {
			length := f.Size - offset
			if !whole {
				length = min(length, room)
			}
			current = append(current, msg.Piece{Path: f.Path, Offset: offset, Length: length})
			offset += length
			if room -= length; room <= 0 {
				partitions, current, room = append(partitions, current), nil, target
			}
		}
	}
	if len(current) > 0 || len(partitions) == 0 {
		partitions = append(partitions, current)
	}
	return partitions
}

// EmptyError is a path that stands for no file.
type EmptyError struct {
	Path   string // absolute
	Folder bool   // a folder, and not a pattern
}

func (e *EmptyError) Error() string {
	if e.Folder {
		return fmt.Sprintf("reading %s: there is no file in the folder; names that begin with _ or . do not count", e.Path)
	}
	return fmt.Sprintf("reading %s: no file matches; names that begin with _ or . do not count", e.Path)
}

// find lists the files that a path of the user stands for.
func find(g *files.Grants, path string) ([]files.File, error) {
	abs, err := g.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("reading text: %w", err)
	}
	// A name with brackets in it is a name first.
	found, err := filesAt(g, abs)
	_, refused := errors.AsType[*files.RefusedError](err)
	if (refused || errors.Is(err, fs.ErrNotExist)) && files.HasPattern(abs) {
		return match(g, abs)
	}
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(path, ",") {
		err = fmt.Errorf("%w (for several paths there is TextFiles)", err)
	}
	if err == nil && len(found) == 0 {
		err = &EmptyError{Path: abs, Folder: true}
	}
	return found, err
}

// filesAt lists a file itself or all files in a folder.
func filesAt(g *files.Grants, path string) ([]files.File, error) {
	info, err := g.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return g.Walk(path, hidden)
	case !info.Mode().IsRegular():
		return nil, files.Explain("reading", path, errors.New("it is neither a file nor a folder"))
	}
	return []files.File{{Path: path, Size: info.Size()}}, nil
}

// match lists the files that a pattern matches and those in the folders that it
// matches, each once.
func match(g *files.Grants, pattern string) ([]files.File, error) {
	names, err := g.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var found []files.File
	for _, name := range names {
		if hiddenFrom(pattern, name) {
			continue
		}
		in, err := filesAt(g, name)
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	if len(found) == 0 {
		return nil, &EmptyError{Path: pattern}
	}
	slices.SortFunc(found, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(found), nil
}

// hidden says whether a name is one that Spark, too, takes for bookkeeping:
// _SUCCESS, _temporary, .part-00000.crc.
func hidden(name string) bool { return name[0] == '_' || name[0] == '.' }

// hiddenFrom says whether a path has a hidden name in it that the pattern does
// not ask for by a part that begins in the same way.
func hiddenFrom(pattern, path string) bool {
	const sep = string(filepath.Separator)
	for name := range strings.SplitSeq(path, sep) {
		if name != "" && hidden(name) && !strings.Contains(pattern, sep+name[:1]) {
			return true
		}
	}
	return false
}

// compression is how a file's text is packed, by its name.
type compression uint8

const (
	plain compression = iota
	gzipped
	zstandard
)

func (c compression) String() string { return [...]string{"plain", "gzip", "zstd"}[c] }

func compressionOf(path string) compression {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		return gzipped
	case ".zst":
		return zstandard
	}
	return plain
}
