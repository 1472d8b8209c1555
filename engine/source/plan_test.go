package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// layout prints partitions as in "a[0:3] b[0:2] | b[2:5]".
func (w *world) layout(partitions [][]msg.Piece) string {
	var b strings.Builder
	for i, p := range partitions {
		if i > 0 {
			b.WriteString(" | ")
		}
		for j, piece := range p {
			if j > 0 {
				b.WriteString(" ")
			}
			name, _ := filepath.Rel(w.folder, piece.Path)
			fmt.Fprintf(&b, "%s[%d:%d]", name, piece.Offset, piece.Offset+piece.Length)
		}
	}
	return b.String()
}

func TestFilesAreDealtOutToPartitions(t *testing.T) {
	w := newWorld(t)
	for name, size := range map[string]int{
		"a": 10, "b": 10, "empty": 0, "z.gz": 25, "in/x": 3, "in/y": 3, "in/z": 3,
		"in/_SUCCESS": 5, "in/.x.crc": 5, "in/_temporary/0/part": 5, "in/deeper/w": 3,
		"void/_only": 1, "data[1]": 4, "data1": 6,
	} {
		w.write(name, make([]byte, size))
	}
	for _, c := range []struct {
		paths  string
		min    int
		target int64
		want   string
	}{
		{"a", 0, 100, "a[0:5] | a[5:10]"},                       // 2 at least, as in Spark
		{"a", 1, 100, "a[0:10]"},                                // one is enough
		{"a", 3, 100, "a[0:4] | a[4:8] | a[8:10]"},              // rounded up
		{"a", 1, 4, "a[0:4] | a[4:8] | a[8:10]"},                // the most of a partition
		{"a", 100, 100, strings.Join(bytewise("a", 10), " | ")}, // no less than a byte
		{"a b", 1, 8, "a[0:8] | a[8:10] b[0:6] | b[6:10]"},      // cut at the remaining room
		{"b a b", 1, 100, "b[0:10] a[0:10] b[0:10]"},            // in the order given, twice if given twice
		{"a z.gz b", 1, 12, "a[0:10] z.gz[0:25] | b[0:10]"},     // never cut
		{"z.gz", 4, 100, "z.gz[0:25]"},                          // nor to reach the minimum
		{"empty", 0, 100, ""},                                   // one partition, of nothing
		{"empty a empty", 1, 100, "a[0:10]"},                    // no trace of empty files
		{"in", 1, 100, "in/deeper/w[0:3] in/x[0:3] in/y[0:3] in/z[0:3]"},
		{"in/*", 1, 100, "in/deeper/w[0:3] in/x[0:3] in/y[0:3] in/z[0:3]"},
		{"in/?", 1, 100, "in/x[0:3] in/y[0:3] in/z[0:3]"},
		{"in/**/[w-x]", 1, 100, "in/deeper/w[0:3] in/x[0:3]"},
		{"in/**", 1, 100, "in/deeper/w[0:3] in/x[0:3] in/y[0:3] in/z[0:3]"}, // each once
		{"{b,a}", 1, 100, "a[0:10] b[0:10]"},
		{"in/_SUCCESS", 1, 100, "in/_SUCCESS[0:5]"},                     // asked for by name
		{"in/_*", 1, 100, "in/_SUCCESS[0:5] in/_temporary/0/part[0:5]"}, // asked for by its beginning
		{"data[1]", 1, 100, "data[1][0:4]"},                             // a name first
		{"data[1-3]", 1, 100, "data1[0:6]"},
		{"./in/../a", 1, 100, "a[0:10]"},
	} {
		got, err := Plan(w.grants, abi.TextDesc{Paths: strings.Fields(c.paths), MinPartitions: c.min}, Options{c.target})
		if err != nil {
			t.Errorf("%s: %v", c.paths, err)
			continue
		}
		if got := w.layout(got); got != c.want {
			t.Errorf("%s, at least %d partitions, at most %d bytes:\n got %s\nwant %s", c.paths, c.min, c.target, got, c.want)
		}
	}
}

func bytewise(name string, n int) (pieces []string) {
	for i := range n {
		pieces = append(pieces, fmt.Sprintf("%s[%d:%d]", name, i, i+1))
	}
	return pieces
}

func TestEveryByteIsDealtOutOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []files.File
		for i := range rapid.IntRange(0, 8).Draw(t, "files") {
			all = append(all, files.File{
				Path: fmt.Sprintf("%d%s", i, rapid.SampledFrom([]string{"", ".gz"}).Draw(t, "suffix")),
				Size: rapid.Int64Range(0, 100).Draw(t, "size"),
			})
		}
		target := rapid.Int64Range(1, 120).Draw(t, "target")
		var again []files.File
		partitions := deal(all, target)
		for i, p := range partitions {
			size := int64(0)
			for _, piece := range p {
				if last := len(again) - 1; last >= 0 && again[last].Path == piece.Path {
					if piece.Offset != again[last].Size {
						t.Fatalf("%v does not go on where the last piece ended", piece)
					}
					again[last].Size += piece.Length
				} else {
					again = append(again, files.File{Path: piece.Path, Size: piece.Length})
				}
				if compressionOf(piece.Path) == plain && size+piece.Length > target {
					t.Fatalf("partition %d is cut at %d bytes, beyond %d", i, size+piece.Length, target)
				}
				size += piece.Length
			}
			if size < target && i < len(partitions)-1 {
				t.Fatalf("partition %d is closed with %d bytes of %d", i, size, target)
			}
		}
		var want []files.File
		for _, f := range all {
			if f.Size > 0 {
				want = append(want, f)
			}
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("files (-want +got):\n%s", diff)
		}
	})
}

func TestPathsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.write("void/_SUCCESS", nil)
	outside := newWorld(t).write("secret", []byte("x"))
	if err := os.Symlink(outside, filepath.Join(w.folder, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(w.folder, name) }
	for path, want := range map[string]string{
		"none":         "reading " + at("none") + ": there is no such file or folder",
		"none,void":    "reading " + at("none,void") + ": there is no such file or folder (for several paths there is TextFiles)",
		"s3://b/k":     "reading text: s3://b/k: this version reads and writes local files only: give a path",
		"file:///x":    "reading text: file:///x: this version reads and writes local files only: give a path",
		"./s3://b/k":   "reading " + at("s3:/b/k") + ": there is no such file or folder",
		"none/*":       "reading " + at("none/*") + ": no file matches; names that begin with _ or . do not count",
		"void":         "reading " + at("void") + ": there is no file in the folder; names that begin with _ or . do not count",
		"void/*":       "reading " + at("void/*") + ": no file matches; names that begin with _ or . do not count",
		"[":            "reading " + at("[") + ": it is not a valid pattern (* ? [a-z] {a,b} **)",
		"/dev/null":    "reading /dev/null is not allowed: add --allow-read /dev/null",
		outside:        "reading " + outside + " is not allowed: add --allow-read " + outside,
		"../*":         "reading " + filepath.Dir(w.folder) + " is not allowed: add --allow-read " + filepath.Dir(w.folder),
		"link":         "reading " + at("link") + " is not allowed, because it leads to " + outside + ": add --allow-read " + outside,
		"":             "reading text: the path is empty",
		"none\x00name": `reading text: the path "none\x00name" has a zero byte in it`,
	} {
		got, err := Plan(w.grants, abi.TextDesc{Paths: []string{path}}, Options{100})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v and error\n     %v\nwant %s", path, got, err, want)
		}
	}
	_, err := Plan(w.grants, abi.TextDesc{Paths: []string{"none"}}, Options{100})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	if _, err := Plan(w.grants, abi.TextDesc{}, Options{100}); err == nil {
		t.Error("no path at all: no error")
	}
}

func TestPlansOfTooManyPartitionsAreRefused(t *testing.T) {
	w := newWorld(t)
	path := w.write("big", nil)
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		min    int
		target int64
	}{
		"1099511627776 bytes are more than 1048576 partitions of 1000 bytes: raise quern.files.maxPartitionBytes": {0, 1000},
		"2000000000 partitions are asked for, and at most 1048576 are possible":                                   {2_000_000_000, 1 << 40},
	} {
		_, err := Plan(w.grants, abi.TextDesc{Paths: []string{"big"}, MinPartitions: c.min}, Options{c.target})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want one that ends with %s", err, want)
		}
	}
	// Sizes beyond 4 GiB are nothing special.
	got, err := Plan(w.grants, abi.TextDesc{Paths: []string{"big"}}, Options{1 << 38})
	if want := "big[0:274877906944] | big[274877906944:549755813888] | big[549755813888:824633720832] | big[824633720832:1099511627776]"; err != nil ||
		w.layout(got) != want {
		t.Errorf("%s, %v, want %s", w.layout(got), err, want)
	}
}
