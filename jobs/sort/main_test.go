package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/quern"
)

// job runs the command line in this process and returns what it prints.
func job(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(ctx, args, &out)
	return out.String(), err
}

func mustRun(t testing.TB, args ...string) string {
	t.Helper()
	out, err := job(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// write makes a folder with a file for each of the texts.
func write(t testing.TB, texts ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%05d", i)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read joins the files of a folder.
func read(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var all bytes.Buffer
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

func TestRecordsHaveTheLayoutOfGensort(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "gen", "-n", "1000", out)
	layout := regexp.MustCompile(`^[ -~]{10}  ([0-9A-F]{32})  (?:0{4}|1{4}|2{4}|3{4}|4{4}|5{4}|6{4}|7{4}|8{4}|9{4}|A{4}|B{4}|C{4}|D{4}|E{4}|F{4}){13}\.$`)
	lines := strings.Split(strings.TrimSuffix(read(t, out), "\n"), "\n")
	if len(lines) != 1000 {
		t.Fatalf("there are %d records, want 1000", len(lines))
	}
	for i, line := range lines {
		m := layout.FindStringSubmatch(line)
		if m == nil || len(line) != 99 || m[1] != fmt.Sprintf("%032X", i) {
			t.Fatalf("record %d is %q", i, line)
		}
	}
}

func TestKeysAreSpreadOverThePrintableCharacters(t *testing.T) {
	const records = 95_000
	var seen [keySize][256]int
	keys := map[string]bool{}
	for i := range int64(records) {
		key := keyOf(record(i))
		keys[key] = true
		for at := range keySize {
			seen[at][key[at]]++
		}
	}
	if len(keys) != records {
		t.Errorf("%d records have %d keys", records, len(keys))
	}
	for at := range keySize {
		for c, n := range seen[at] {
			// 1000 on average, with a standard deviation of 32.
			if c < ' ' || c > '~' {
				if n != 0 {
					t.Errorf("character %q is in a key", rune(c))
				}
			} else if n < 800 || n > 1200 {
				t.Errorf("character %q is %d times in place %d of a key, want about 1000", rune(c), n, at)
			}
		}
	}
}

func TestRecordsDoNotDependOnPartitions(t *testing.T) {
	dir := t.TempDir()
	var want string
	for _, parts := range []string{"1", "2", "7", "200"} {
		out := filepath.Join(dir, parts)
		mustRun(t, "gen", "-n", "100", "-parts", parts, out)
		got := read(t, out)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("with %s partitions the records are others than with 1", parts)
		}
	}
}

func TestSortedRecordsAreValid(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	mustRun(t, "gen", "-n", "5000", "-parts", "3", in)
	mustRun(t, "sort", "-parts", "4", in, out)
	records := strings.SplitAfter(read(t, in), "\n")
	slices.Sort(records)
	if diff := cmp.Diff(strings.Join(records, ""), read(t, out)); diff != "" {
		t.Errorf("sorted records (-want +got):\n%s", diff)
	}
	valid := mustRun(t, "validate", out)
	if !strings.HasPrefix(valid, "Records: 5000\n") || !strings.HasSuffix(valid, "\nSUCCESS - all records are in order\n") {
		t.Errorf("validate says %q", valid)
	}
	unsorted, err := job(t, "validate", in)
	if err == nil {
		t.Error("validate does not mind unsorted records")
	}
	if !strings.HasPrefix(valid, unsorted) { // records and checksum
		t.Errorf("of the input validate says %q, of the output %q", unsorted, valid)
	}
}

func TestSortKeepsEqualKeysInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
	}{
		{"an empty file", []string{""}},
		{"one line without an end", []string{"only"}},
		{"lines shorter than a key", []string{"b\n\na\nab\n", "b\nabcdefghij\nabcdefghi\n"}},
		{"the rest of a line does not matter", []string{"same key..z\nsame key..a\n", "same key..m\nsame key\n"}},
		{"carriage returns", []string{"z\r\na\r\n"}},
		{"bytes that are no text", []string{"\xff\xfe\n\x80\n\x00\n~\n"}},
	} {
		for _, parts := range []string{"0", "1", "5"} {
			t.Run(c.name+"/"+parts, func(t *testing.T) {
				in, out := write(t, c.texts...), filepath.Join(t.TempDir(), "out")
				mustRun(t, "sort", "-parts", parts, in, out)
				if diff := cmp.Diff(sortedPlainly(c.texts), read(t, out)); diff != "" {
					t.Errorf("sorted lines (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// sortedPlainly is what sort makes of files: it deals the lines into heaps.
func sortedPlainly(texts []string) string {
	heaps := map[string]string{}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			heaps[fmt.Sprintf("%x", keyOf(line))] += line + "\n"
		}
	}
	var all string
	for _, key := range slices.Sorted(maps.Keys(heaps)) {
		all += heaps[key]
	}
	return all
}

// Few different keys in few records, some sorted: duplicates and disorder, inside
// partitions and between them, and partitions without records.
func TestSummariesFindWhatAPlainScanFinds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-c]{1,2}`), 0, 12).Draw(r, "lines")
		if rapid.Bool().Draw(r, "sorted") {
			slices.Sort(lines)
		}
		parts := rapid.IntRange(1, 8).Draw(r, "parts")
		ctx, err := quern.NewContext()
		if err != nil {
			t.Fatal(err)
		}
		got, err := summarize(ctx.Parallelize(lines, parts))
		if err != nil {
			t.Fatal(err)
		}
		ignored := cmpopts.IgnoreFields(summary{}, "Checksum", "First", "Last")
		if diff := cmp.Diff(scanned(lines), got, ignored); diff != "" {
			r.Fatalf("summary (-want +got):\n%s", diff)
		}
	})
}

// scanned counts in the whole row at once.
func scanned(lines []string) *summary {
	s := &summary{Records: int64(len(lines))}
	for i := 1; i < len(lines); i++ {
		switch strings.Compare(lines[i-1], lines[i]) {
		case 0:
			s.Duplicates++
		case 1:
			if s.Disordered++; s.Disordered == 1 {
				s.FirstDisordered = int64(i)
			}
		}
	}
	return s
}

func TestValidateSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name    string
		texts   []string
		printed string
		err     string
	}{
		{"no records", []string{""},
			"Records: 0\nChecksum: 0000000000000000\nDuplicate keys: 0\nSUCCESS - all records are in order\n", ""},
		{"disorder inside a file", []string{"a\nb\n", "d\nc\ne\n"},
			"Records: 5\n", "1 records are out of order, the first one is record 3"},
		{"disorder between files", []string{"a\nc\n", "b\nb\n", "a\n"},
			"Records: 5\n", "2 records are out of order, the first one is record 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := job(t, "validate", write(t, c.texts...))
			if !strings.HasPrefix(out, c.printed) {
				t.Errorf("it prints %q, want %q first", out, c.printed)
			}
			if c.err == "" && err != nil || c.err != "" && fmt.Sprint(err) != c.err {
				t.Errorf("the error is %v, want %q", err, c.err)
			}
		})
	}
}

func TestChecksumNoticesEveryByte(t *testing.T) {
	line := record(12345)
	seen := map[uint64]int{hash(line): -1}
	for i := range line {
		changed := []byte(line)
		changed[i] ^= 1
		h := hash(string(changed))
		if at, found := seen[h]; found {
			t.Errorf("changing byte %d gives the hash of changing byte %d", i, at)
		}
		seen[h] = i
	}
	// Below eight bytes it is FNV-1a.
	f := fnv.New64a()
	f.Write([]byte("quern"))
	if got := hash("quern"); got != f.Sum64() {
		t.Errorf("the hash of a short line is %x, want %x", got, f.Sum64())
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for _, args := range [][]string{nil, {"gen"}, {"sort", "in"}, {"validate"}, {"merge", "in"}} {
		if _, err := job(t, args...); err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
			t.Errorf("sort %q: the error is %v, want the usage", args, err)
		}
	}
	for _, args := range [][]string{{"gen", "-n", "-1", "x"}, {"gen", "-parts", "-1", "x"}, {"sort", "-parts", "-1", "x", "y"}} {
		if _, err := job(t, args...); err == nil {
			t.Errorf("sort %q: there is no error", args)
		}
	}
}
