//go:build !wasip1

package quern

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/abi"
)

// writeFiles makes files with the given contents below a new folder, which
// becomes the current one.
func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func gzipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextPathsStandForFiles(t *testing.T) {
	writeFiles(t, map[string]string{
		"in/b.txt": "b", "in/a.txt": "a", "in/_SUCCESS": "", "in/.part.crc": "x", "in/sub/c.txt": "c", "in/sub/deep/d.txt": "d",
		"other/a.log": "l", "[odd].txt": "o",
	})
	for path, want := range map[string][]string{
		"in/a.txt":                   {"in/a.txt"},
		"in":                         {"in/a.txt", "in/b.txt", "in/sub/c.txt", "in/sub/deep/d.txt"},
		"in/":                        {"in/a.txt", "in/b.txt", "in/sub/c.txt", "in/sub/deep/d.txt"},
		"./in/*.txt":                 {"in/a.txt", "in/b.txt"},
		"in/*":                       {"in/a.txt", "in/b.txt", "in/sub/c.txt", "in/sub/deep/d.txt"},
		"in/**":                      {"in/a.txt", "in/b.txt", "in/sub/c.txt", "in/sub/deep/d.txt"},
		"{other,in/sub}/*.{log,txt}": {"in/sub/c.txt", "other/a.log"},
		"in/_*":                      {"in/_SUCCESS"},
		"*/a.*":                      {"in/a.txt", "other/a.log"},
		"in/**/*.txt":                {"in/a.txt", "in/b.txt", "in/sub/c.txt", "in/sub/deep/d.txt"},
		"**/d.txt":                   {"in/sub/deep/d.txt"},
		"in/[b-z].*":                 {"in/b.txt"},
		"[odd].txt":                  {"[odd].txt"},
	} {
		t.Run(path, func(t *testing.T) {
			files, err := findFiles(path)
			if err != nil {
				t.Fatal(err)
			}
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				name, err := filepath.Rel(here, f.path)
				if err != nil {
					t.Error(err)
				}
				got = append(got, filepath.ToSlash(name))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("files (-want +got):\n" + diff)
			}
			if again, err := findFiles(filepath.Join(here, path)); err != nil || !slices.Equal(again, files) {
				t.Errorf("as an absolute path: %v and error %v, want the same", again, err)
			}
		})
	}
}

func TestFoldersAreFollowedThroughLinksOnce(t *testing.T) {
	writeFiles(t, map[string]string{"in/a": "a", "elsewhere/b": "b"})
	for link, to := range map[string]string{"in/file": "a", "in/folder": "../elsewhere", "elsewhere/back": "../in"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	files, err := findFiles("in")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, filepath.Base(f.path))
	}
	if want := []string{"a", "file", "b"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestTextPathsThatStandForNothingAreNamed(t *testing.T) {
	writeFiles(t, map[string]string{"data.zst": "x", "empty/_SUCCESS": "", "in/a": ""})
	for path, want := range map[string]string{
		"":            "the path is empty",
		"missing.txt": "missing.txt: no such file",
		"a.txt,b.txt": "a.txt,b.txt: no such file or directory (for several paths there is TextFiles)",
		"s3://b/k":    "reading s3://b/k: this version reads and writes local files only: give a path",
		"file:///x":   "reading file:///x: this version reads and writes local files only: give a path",
		"./s3://b/k":  "k: no such file",
		"missing/*":   "missing/*: no file matches",
		"in/a/*":      "in/a/*: not a directory",
		"empty":       "empty: no file matches",
		"in/[":        "syntax error in pattern",
		"data.zst":    "data.zst: zstd is not available natively",
		"in/a/b":      "in/a/b: not a directory",
	} {
		if _, err := findFiles(path); err == nil || !strings.Contains(filepath.ToSlash(err.Error()), want) {
			t.Errorf("%q: error %v, want one with %q", path, err, want)
		}
	}
	if _, err := planText(&abi.TextDesc{}, 1); err == nil || !strings.Contains(err.Error(), "no path was given") {
		t.Errorf("no path at all: error %v", err)
	}
}

func TestSmallFilesShareAPartitionAndLargeOnesAreCut(t *testing.T) {
	plain := func(path string, length int64) textPiece { return textPiece{path: path, length: length} }
	piece := func(path string, offset, length int64) textPiece {
		return textPiece{path: path, offset: offset, length: length}
	}
	zipped := func(path string, length int64) textPiece { return textPiece{path: path, length: length, gzip: true} }
	for name, c := range map[string]struct {
		files []textPiece
		min   int64
		max   int64
		deal  [][]textPiece
	}{
		"halves by default": {
			[]textPiece{plain("a", 7)}, 2, 100,
			[][]textPiece{{piece("a", 0, 4)}, {piece("a", 4, 3)}},
		},
		"at most the largest size": {
			[]textPiece{plain("a", 10)}, 2, 4,
			[][]textPiece{{piece("a", 0, 4)}, {piece("a", 4, 4)}, {piece("a", 8, 2)}},
		},
		"small files in order until the target is reached": {
			[]textPiece{plain("a", 3), plain("b", 3), plain("c", 6)}, 1, 5,
			[][]textPiece{{piece("a", 0, 3), piece("b", 0, 2)}, {piece("b", 2, 1), piece("c", 0, 4)}, {piece("c", 4, 2)}},
		},
		"compressed files whole": {
			[]textPiece{plain("a", 1), zipped("b", 9), zipped("c", 2), plain("d", 3)}, 1, 4,
			[][]textPiece{{piece("a", 0, 1), zipped("b", 9)}, {zipped("c", 2), piece("d", 0, 2)}, {piece("d", 2, 1)}},
		},
		"one partition where one is enough": {
			[]textPiece{plain("a", 7)}, 1, 100,
			[][]textPiece{{piece("a", 0, 7)}},
		},
		"one partition for empty files": {
			[]textPiece{plain("a", 0), plain("b", 0)}, 2, 4,
			[][]textPiece{nil},
		},
		"no more partitions than bytes": {
			[]textPiece{plain("a", 2)}, 5, 4,
			[][]textPiece{{piece("a", 0, 1)}, {piece("a", 1, 1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := dealOut(c.files, c.min, c.max)
			if diff := cmp.Diff(c.deal, got, cmp.AllowUnexported(textPiece{})); diff != "" {
				t.Error("partitions (-want +got):\n" + diff)
			}
		})
	}
}

// readPort reads to the end, with buffers no larger than need be.
func readPort(p nativeReader, size int) ([]byte, error) {
	var all []byte
	buf := make([]byte, size)
	for {
		n, err := p.read(buf)
		if err != nil || n == 0 {
			return all, err
		}
		if n > len(buf) {
			buf = make([]byte, n)
			continue
		}
		all = append(all, buf[:n]...)
	}
}

func readLines(pieces []textPiece, bufferSize int) ([]string, error) {
	batch, err := readPort(newTextPort(pieces), bufferSize)
	lines := []string{}
	for len(batch) > 0 {
		size, n := binary.Uvarint(batch)
		lines = append(lines, string(batch[n:n+int(size)]))
		batch = batch[n+int(size):]
	}
	return lines, err
}

// splitLines is what the lines of a text are, told without pieces.
func splitLines(text string) []string {
	lines := []string{}
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		if ended {
			line = strings.TrimSuffix(line, "\r")
		}
		lines = append(lines, line)
		text = rest
	}
	return lines
}

func TestEachLineIsReadOnceHoweverTheTextIsCut(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]string{"a", "\n", "\r\n", "\r", "é", "𝄞", ""})
		texts := rapid.SliceOfN(rapid.Map(rapid.SliceOf(letter), func(s []string) string { return strings.Join(s, "") }), 1, 3).
			Draw(t, "texts")
		var files []textPiece
		want := []string{}
		for i, text := range texts {
			path := filepath.Join(dir, fmt.Sprint(i))
			zip := rapid.Bool().Draw(t, "gzip")
			want = append(want, splitLines(text)...)
			if zip {
				half := rapid.IntRange(0, len(text)).Draw(t, "first member")
				text = gzipped(nopTB{}, text[:half]) + gzipped(nopTB{}, text[half:])
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			files = append(files, textPiece{path: path, length: int64(len(text)), gzip: zip})
		}
		got := []string{}
		for _, part := range dealOut(files, rapid.Int64Range(1, 9).Draw(t, "partitions"), rapid.Int64Range(1, 9).Draw(t, "bytes")) {
			lines, err := readLines(part, rapid.IntRange(0, 20).Draw(t, "buffer"))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, lines...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal("lines (-want +got):\n" + diff)
		}
	})
}

// nopTB lets gzipped be used where a failure is impossible.
type nopTB struct{ testing.TB }

func (nopTB) Helper() {}

func TestLinesLongerThanAnyBuffer(t *testing.T) {
	long := strings.Repeat("0123456789", 5*abi.BatchSize/10)
	writeFiles(t, map[string]string{"a": "short\r\n" + long + "\r\n" + long + "\nend"})
	size := int64(len("short\r\n" + long + "\r\n" + long + "\nend"))
	got := []string{}
	for _, part := range dealOut([]textPiece{{path: "a", length: size}}, 7, size) {
		lines, err := readLines(part, 100)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, lines...)
	}
	if diff := cmp.Diff([]string{"short", long, long, "end"}, got); diff != "" {
		t.Error("lines (-want +got):\n" + diff)
	}
}

func TestBadCompressedDataIsNamedWithItsPlace(t *testing.T) {
	whole := gzipped(t, "one\n") + gzipped(t, "two\n")
	writeFiles(t, map[string]string{
		"short.gz": whole[:len(whole)-3], "head.gz": whole[:3], "tail.gz": whole + "rubbish after it", "plain.gz": "not compressed",
	})
	for path, want := range map[string]string{
		"short.gz": fmt.Sprintf("short.gz: its gzip data ends early, at byte %d", len(whole)-3),
		"head.gz":  "head.gz: its gzip data ends early, at byte 3",
		"tail.gz":  "tail.gz: bad gzip data",
		"plain.gz": "plain.gz: bad gzip data",
	} {
		if _, err := readLines([]textPiece{{path: path, length: 1, gzip: true}}, 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", path, err, want)
		}
	}
}

func TestAFileThatIsGoneIsNamed(t *testing.T) {
	_, err := readLines([]textPiece{{path: "gone.txt", length: 1}}, 100)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "gone.txt") {
		t.Errorf("error %v", err)
	}
}

func TestAFileThatHasBecomeShorterIsNamed(t *testing.T) {
	writeFiles(t, map[string]string{"shrunk.txt": "one\ntwo\n"})
	for _, p := range []textPiece{{path: "shrunk.txt", length: 20}, {path: "shrunk.txt", offset: 20, length: 5}} {
		if _, err := readLines([]textPiece{p}, 100); err == nil || !strings.Contains(err.Error(), "shrunk.txt: it had") {
			t.Errorf("error %v", err)
		}
	}
}

func FuzzTextPieces(f *testing.F) {
	f.Add("a\r\nb\n\nc", int64(2), int64(3))
	f.Add("\n\n", int64(1), int64(1))
	f.Add("no end", int64(9), int64(1))
	path := filepath.Join(f.TempDir(), "text")
	f.Fuzz(func(t *testing.T, text string, partitions, bytes int64) {
		if len(text) > 1<<12 || partitions < 1 || bytes < 1 {
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, part := range dealOut([]textPiece{{path: path, length: int64(len(text))}}, partitions, bytes) {
			lines, err := readLines(part, 16)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, lines...)
		}
		if diff := cmp.Diff(splitLines(text), got); diff != "" {
			t.Error("lines (-want +got):\n" + diff)
		}
	})
}
