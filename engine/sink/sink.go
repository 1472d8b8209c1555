// Package sink writes the output of a job to a folder, so that it is there as a
// whole or not at all.
//
// Every attempt of a task writes a file of its own below the folder:
//
//	<target>/_temporary/<job>/part-<partition>-<task>[.gz|.zst]
//
// and reports it. The driver accepts one file a partition, and when the job has
// all of them it commits: each accepted file is moved to
//
//	<target>/part-<partition>[.gz|.zst]
//
// then _temporary goes, with all that failed, killed and late attempts have left
// there, and then an empty file _SUCCESS is made. So attempts never have to ask
// who may commit, and one that is late finds its folder gone.
//
// What a reader sees: a folder with _SUCCESS in it holds exactly the job's
// output, one file for each partition, empty ones too. A folder without it is
// being written, or was when its writer died, and is then to be removed by
// whoever owns it: Begin refuses any target that is there, and says so in the
// second case. When Commit fails it takes back what it has moved, and when it
// cannot even do that it says so.
//
// The order of calls is Begin, any number of Writers, and one of Commit and
// Abort. The bytes of a file depend on nothing but what was written to it.
package sink

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
)

const (
	temporary = "_temporary"
	success   = "_SUCCESS"
	// madeFile is in temporary and holds how many folders Begin has made, the
	// target and those above it.
	madeFile = "made"
)

// ExistsError is a target that is there already.
type ExistsError struct {
	Path string
	// Unfinished says that it was left by a job that died, or is being written by
	// one that runs.
	Unfinished bool
}

func (e *ExistsError) Error() string {
	if e.Unfinished {
		return fmt.Sprintf("saving to %s: another job is writing it, or has died while it was (%s without %s): "+
			"if none is running, remove the folder", e.Path, temporary, success)
	}
	return fmt.Sprintf("saving to %s: it exists already, and output never replaces anything: remove it, or save elsewhere", e.Path)
}

// Begin makes the target, whose path must be absolute and clean, and what
// attempts need in it. It answers an
// [ExistsError], or an error of package files; nothing is left behind then.
func Begin(g *files.Grants, s msg.Sink) error {
	if _, err := suffix(s); err != nil {
		return err
	}
	exists, err := g.Exists(s.Path)
	if err != nil {
		return fmt.Errorf("saving to %s: %w", s.Path, err)
	}
	if exists {
		return existsError(g, s)
	}
	made, err := g.MakeFolder(s.Path)
	if err != nil {
		if exists, _ := g.Exists(s.Path); exists {
			return existsError(g, s) // another job was quicker
		}
		return errors.Join(fmt.Errorf("saving to %s: %w", s.Path, err), g.RemoveEmpty(filepath.Dir(s.Path), made))
	}
	err = g.Mkdir(filepath.Join(s.Path, temporary))
	if err == nil {
		err = g.Mkdir(attempts(s))
	}
	if err == nil {
		err = writeFile(g, filepath.Join(s.Path, temporary, madeFile), strconv.Itoa(made))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("saving to %s: %w", s.Path, err), cleanUp(g, s, made, nil))
	}
	return nil
}

func existsError(g *files.Grants, s msg.Sink) error {
	begun, err := g.Exists(filepath.Join(s.Path, temporary))
	done, err2 := g.Exists(filepath.Join(s.Path, success))
	return &ExistsError{Path: s.Path, Unfinished: err == nil && err2 == nil && begun && !done}
}

// Commit makes the accepted outputs, one a partition, the content of the target.
// On failure it takes everything back, as Abort does.
func Commit(g *files.Grants, s msg.Sink, outputs []msg.SinkOutput) error {
	made := foldersMade(g, s)
	moved, err := commit(g, s, outputs)
	if err != nil {
		return errors.Join(fmt.Errorf("committing the output to %s: %w", s.Path, err), cleanUp(g, s, made, moved))
	}
	return nil
}

func commit(g *files.Grants, s msg.Sink, outputs []msg.SinkOutput) (moved []string, err error) {
	if err := check(g, s, outputs); err != nil {
		return nil, err
	}
	suffix, err := suffix(s)
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		to := filepath.Join(s.Path, partName(o.Partition)+suffix)
		if err := g.Rename(o.Path, to); err != nil {
			return moved, err
		}
		moved = append(moved, to)
	}
	if err := removeTemporary(g, s); err != nil {
		return moved, err
	}
	done := filepath.Join(s.Path, success)
	return append(moved, done), writeFile(g, done, "")
}

// check compares what the executors reported with what is there, before
// anything moves.
func check(g *files.Grants, s msg.Sink, outputs []msg.SinkOutput) error {
	suffix, err := suffix(s)
	if err != nil {
		return err
	}
	outputs = slices.SortedFunc(slices.Values(outputs), func(a, b msg.SinkOutput) int {
		return cmp.Compare(a.Partition, b.Partition)
	})
	for i, o := range outputs {
		if i > 0 && outputs[i-1].Partition == o.Partition {
			return fmt.Errorf("partition %d has two outputs, %s and %s", o.Partition, outputs[i-1].Path, o.Path)
		}
		folder, name := filepath.Split(o.Path)
		task, ok := strings.CutPrefix(name, partName(o.Partition)+"-")
		task, ok2 := strings.CutSuffix(task, suffix)
		if _, err := strconv.ParseUint(task, 10, 64); filepath.Clean(folder) != attempts(s) || !ok || !ok2 || err != nil {
			return fmt.Errorf("%s is not an output of partition %d of this job", o.Path, o.Partition)
		}
		size, err := g.WrittenSize(o.Path)
		if err != nil {
			return err
		}
		if size != o.Bytes {
			return fmt.Errorf("%s has %d bytes, and its task wrote %d", o.Path, size, o.Bytes)
		}
	}
	return nil
}

// Abort removes what Begin and the attempts have made. Files that somebody else
// has put into the target stay, and the target with them. Attempts may still be
// running; they fail then. Abort may be called again, and after Commit, too,
// when it does nothing.
func Abort(g *files.Grants, s msg.Sink) error { return cleanUp(g, s, foldersMade(g, s), nil) }

// foldersMade is how many folders Begin has made.
func foldersMade(g *files.Grants, s msg.Sink) int {
	text, err := g.ReadBack(filepath.Join(s.Path, temporary, madeFile))
	if err != nil {
		return 0 // Begin has not made them, or somebody has removed them
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return n
}

// cleanUp removes what was moved, what is temporary, and the folders made, if
// they are empty then.
func cleanUp(g *files.Grants, s msg.Sink, made int, moved []string) error {
	if made == 0 {
		return nil
	}
	var problems []error
	for _, path := range moved {
		problems = append(problems, g.RemoveAll(path))
	}
	err := removeTemporary(g, s)
	if err == nil {
		err = g.RemoveEmpty(s.Path, made)
	}
	if err := errors.Join(append(problems, err)...); err != nil {
		return fmt.Errorf("removing the unfinished output in %s: %w", s.Path, err)
	}
	return nil
}

// removeTries is how often an attempt may slip a file into the folder that is
// being removed. There are only so many that still run.
const removeTries = 100

// removeTemporary removes the attempts first: as long as madeFile is there,
// Abort can be called again.
func removeTemporary(g *files.Grants, s msg.Sink) error {
	err := g.RemoveAll(attempts(s))
	for n := 1; n < removeTries && errors.Is(err, fs.ErrExist); n++ {
		err = g.RemoveAll(attempts(s))
	}
	if err != nil {
		return err
	}
	return g.RemoveAll(filepath.Join(s.Path, temporary))
}

// attempts is the folder of the attempts' files.
func attempts(s msg.Sink) string {
	return filepath.Join(s.Path, temporary, strconv.FormatUint(uint64(s.Job), 10))
}

func partName(partition int) string { return fmt.Sprintf("part-%05d", partition) }

// suffix ends the names of a sink's files.
func suffix(s msg.Sink) (string, error) {
	switch s.Compression {
	case "":
		return "", nil
	case "gzip":
		return ".gz", nil
	case "zstd":
		return ".zst", nil
	}
	return "", fmt.Errorf("saving to %s: there is no compression %q: use gzip, zstd or none", s.Path, s.Compression)
}

func writeFile(g *files.Grants, path, text string) error {
	f, err := g.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return files.Explain("writing", path, err)
	}
	return nil
}
