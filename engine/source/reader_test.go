package source

import (
	"bytes"
	"context"
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

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
)

// world is a folder that a job may read, with files in it.
type world struct {
	t      testing.TB
	folder string
	grants *files.Grants
	mem    budget
}

func newWorld(t testing.TB) *world {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g, err := files.New(folder, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return &world{t: t, folder: folder, grants: g}
}

// write makes a file, and the folders it lies in, and returns its path.
func (w *world) write(name string, content []byte) string {
	path := filepath.Join(w.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
		panic(err) // a fuzz target must not use w.t
	}
	return path
}

// budget is a Memory that counts, and refuses beyond its limit if it has one.
type budget struct {
	limit, used, peak int64
	kept              []byte // a freed buffer, for the next one who needs its size
}

var errNoMemory = errors.New("over the limit of this test")

func (b *budget) Acquire(n int64) error {
	if b.limit > 0 && b.used+n > b.limit {
		return errNoMemory
	}
	b.used += n
	b.peak = max(b.peak, b.used)
	return nil
}

func (b *budget) Release(n int64) { b.used -= n }

func (b *budget) Alloc(n int) ([]byte, error) {
	if err := b.Acquire(int64(n)); err != nil {
		return nil, err
	}
	if buf := b.kept; len(buf) == n {
		b.kept = nil
		return buf, nil
	}
	buf := make([]byte, n)
	for i := 0; i < n; i += 512 {
		buf[i] = '\n' // undefined content must not be taken for text
	}
	return buf, nil
}

func (b *budget) Free(buf []byte) {
	b.Release(int64(cap(buf)))
	b.kept = buf
}

// readAll reads the lines of pieces through a buffer of size bytes, which
// grows when a record needs it.
func (w *world) readAll(pieces []msg.Piece, size int) ([]string, error) {
	r := Open(context.Background(), w.grants, &w.mem, pieces)
	lines, err := drain(r, size)
	if int64(len(lines)) != r.Records() && err == nil {
		err = fmt.Errorf("%d records counted, %d answered", r.Records(), len(lines))
	}
	err = errors.Join(err, r.Close(), r.Close())
	if w.mem.used != 0 {
		err = errors.Join(err, fmt.Errorf("%d bytes of memory not returned", w.mem.used))
	}
	return lines, err
}

func drain(r *Reader, size int) ([]string, error) {
	buf := make([]byte, size)
	lines := []string{}
	for {
		n, err := r.Next(buf)
		if errors.Is(err, io.EOF) && n == 0 {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		if n > len(buf) {
			buf = make([]byte, n)
			continue
		}
		if n == 0 {
			return lines, errors.New("neither records nor an error")
		}
		for batch := buf[:n]; len(batch) > 0; {
			length, head := binary.Uvarint(batch)
			if head <= 0 || uint64(len(batch)-head) < length {
				return lines, fmt.Errorf("a batch that does not end with a record: %q", batch)
			}
			lines = append(lines, string(batch[head:head+int(length)]))
			batch = batch[head+int(length):]
		}
	}
}

// naive is what reading must agree with.
func naive(text string) []string {
	lines := []string{}
	for line := range strings.Lines(text) {
		if whole, ok := strings.CutSuffix(line, "\n"); ok {
			line = strings.TrimSuffix(whole, "\r")
		}
		lines = append(lines, line)
	}
	return lines
}

// cut cuts a file at the borders.
func cut(path string, size int64, borders []int64) []msg.Piece {
	pieces := []msg.Piece{}
	from := int64(0)
	for _, to := range append(borders, size) {
		if to > from {
			pieces = append(pieces, msg.Piece{Path: path, Offset: from, Length: to - from})
			from = to
		}
	}
	return pieces
}

// check reads a text cut at borders, piece by piece and all in one, and compares
// with the naive split.
func (w *world) check(t interface{ Fatalf(string, ...any) }, text string, borders []int64, size int) {
	w.checkFile(t, w.write("text", []byte(text)), text, borders, size)
}

// checkFile is check of a text that is in a file already.
func (w *world) checkFile(t interface{ Fatalf(string, ...any) }, path, text string, borders []int64, size int) {
	want := naive(text)
	pieces := cut(path, int64(len(text)), borders)
	for _, groups := range [][][]msg.Piece{split(pieces), {pieces}} {
		got := []string{}
		for _, pieces := range groups {
			lines, err := w.readAll(pieces, size)
			if err != nil {
				t.Fatalf("%.1000q cut at %v: %v", text, borders, err)
			}
			got = append(got, lines...)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("%.1000q cut at %v, in batches of %d (-want +got):\n%.1000s", text, borders, size, cmp.Diff(want, got))
		}
	}
}

func split(pieces []msg.Piece) [][]msg.Piece {
	var each [][]msg.Piece
	for _, p := range pieces {
		each = append(each, []msg.Piece{p})
	}
	return each
}

func TestLinesAtEveryBorder(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{
		"",
		"\n",
		"\n\n\n",
		"a",
		"one\ntwo\nthree",
		"one\ntwo\nthree\n",
		"one\r\ntwo\r\n\r\nthree\r\n",
		"\r\r\n\ra\rb\n\r",
		"grüße\n日本語\r\n🪨🌾\n",
		"a line that is longer than the others\n\nb\n",
		strings.Repeat("x", 200) + "\n" + strings.Repeat("y", 127) + "\r\n" + strings.Repeat("z", 128),
	} {
		path := w.write("text", []byte(text))
		for i := range int64(len(text) + 1) {
			w.checkFile(t, path, text, []int64{i}, 64)
			w.checkFile(t, path, text, []int64{i, min(i+1, int64(len(text)))}, 1)
		}
	}
}

func TestAnyTextCutAnywhereGivesTheLinesOfTheWhole(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'b', '\n', '\r', 'ü', '🪨'}), 0, 300, -1).Draw(t, "text")
		borders := rapid.SliceOfN(rapid.Int64Range(0, int64(len(text))), 0, 6).Draw(t, "borders")
		size := rapid.IntRange(0, 100).Draw(t, "batch")
		w.check(t, text, ascending(borders), size)
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n\r\nthree"), uint16(3), uint16(5), uint16(10))
	f.Add([]byte("\r\n\r\n\n\r"), uint16(1), uint16(2), uint16(0))
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, text []byte, a, b, size uint16) {
		n := int64(len(text))
		w.check(t, string(text), ascending([]int64{int64(a) % (n + 1), int64(b) % (n + 1)}), int(size))
	})
}

// ascending sorts the few borders of a test.
func ascending(borders []int64) []int64 {
	for i := range borders {
		for j := i; j > 0 && borders[j] < borders[j-1]; j-- {
			borders[j], borders[j-1] = borders[j-1], borders[j]
		}
	}
	return borders
}

// A text of several buffers, with lines and line ends across their borders.
func TestLinesAcrossBuffers(t *testing.T) {
	w := newWorld(t)
	for shift := range 3 {
		var text bytes.Buffer
		text.WriteString(strings.Repeat("s", shift))
		for i := 0; text.Len() < 3*bufferSize; i++ {
			// A "\r" and a "\n" on either side of each buffer's border.
			if room := bufferSize - text.Len()%bufferSize; room < 200 {
				text.WriteString(strings.Repeat("b", room-1))
			} else {
				fmt.Fprintf(&text, "line %d %s", i, strings.Repeat("é", i%60))
			}
			text.WriteString("\r\n")
		}
		n := int64(text.Len())
		w.check(t, text.String(), []int64{bufferSize - 1, bufferSize, bufferSize + 1, n - 1}, 64<<10)
	}
}

func TestALineLongerThanAnyBuffer(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("0123456789", bufferSize/2) // five buffers
	text := "before\n" + long + "\r\nafter\n" + strings.Repeat("short\n", 400_000)
	path := w.write("long", []byte(text))
	mem := &budget{}
	r := Open(context.Background(), w.grants, mem, cut(path, int64(len(text)), nil))
	defer r.Close()

	buf := make([]byte, 100)
	if n, err := r.Next(buf); err != nil || n != 7 {
		t.Fatalf("before the long line: %d, %v, want the 7 bytes of one record", n, err)
	}
	want := recordSize(len(long))
	for range 2 { // nothing is consumed by asking
		if n, err := r.Next(buf); err != nil || n != want {
			t.Fatalf("a buffer of 100 bytes: %d, %v, want the size of the record, %d", n, err, want)
		}
	}
	buf = make([]byte, want)
	if n, err := r.Next(buf); err != nil || n != want || string(buf[want-len(long):]) != long {
		t.Fatalf("a buffer of the right size: %d, %v, or other bytes", n, err)
	}
	if mem.used < int64(len(long)) {
		t.Errorf("a line of %d bytes was buffered in %d bytes of the task's memory", len(long), mem.used)
	}
	lines, err := drain(r, 1000)
	if err != nil || len(lines) != 400_001 || lines[0] != "after" {
		t.Fatalf("after the long line: %d lines, %v", len(lines), err)
	}
	if mem.used > bufferSize {
		t.Errorf("%d bytes are kept for the long line", mem.used)
	}
}

func TestALongLineOverTheMemoryLimitFails(t *testing.T) {
	w := newWorld(t)
	path := w.write("long", bytes.Repeat([]byte{'x'}, 1<<20))
	mem := &budget{limit: 1 << 20}
	r := Open(context.Background(), w.grants, mem, cut(path, 1<<20, nil))
	_, err := r.Next(make([]byte, 10))
	if !errors.Is(err, errNoMemory) || !strings.Contains(err.Error(), "reading "+path+", at byte 0 of the text") {
		t.Errorf("error %v, want the memory's, with the file and the place", err)
	}
	r.Close()
	if mem.used != 0 {
		t.Errorf("%d bytes not returned", mem.used)
	}
}

func TestALineOverTheLongestRecordIsRefused(t *testing.T) {
	w := newWorld(t)
	const limit = 3 * bufferSize
	for extra, ok := range map[int]bool{0: true, 1: false} {
		text := "ok\n" + strings.Repeat("x", limit+extra) + "\r\n"
		path := w.write("huge", []byte(text))
		r := Open(context.Background(), w.grants, &budget{}, cut(path, int64(len(text)), nil))
		r.longest = limit + 2
		lines, err := drain(r, 10)
		r.Close()
		if ok && (err != nil || len(lines) != 2) {
			t.Errorf("a line as long as may be: %d lines, %v", len(lines), err)
		}
		if !ok {
			want := LongLineError{Path: path, Offset: 3, Limit: limit}
			if long, is := errors.AsType[*LongLineError](err); !is || *long != want || len(lines) != 1 {
				t.Errorf("a byte more: %d lines and error %v, want 1 and %v", len(lines), err, &want)
			}
		}
	}
}

func TestFilesFollowEachOtherInOneBatch(t *testing.T) {
	w := newWorld(t)
	pieces := []msg.Piece{
		{Path: w.write("a", []byte("1\n2")), Length: 3},
		{Path: w.write("b/c", []byte("3\n")), Length: 2},
		{Path: w.write("b/d", []byte("4")), Length: 1},
	}
	r := Open(context.Background(), w.grants, &budget{}, pieces)
	defer r.Close()
	buf := make([]byte, 100)
	n, err := r.Next(buf)
	if want := "\x011\x012\x013\x014"; err != nil || string(buf[:n]) != want {
		t.Errorf("%q, %v, want %q", buf[:n], err, want)
	}
	if n, err := r.Next(buf); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v, want io.EOF", n, err)
	}
	if r.Bytes() != 6 || r.Records() != 4 {
		t.Errorf("counted %d bytes and %d records, want 6 and 4", r.Bytes(), r.Records())
	}
}

func TestFilesThatChangedWhileTheJobRan(t *testing.T) {
	w := newWorld(t)
	path := w.write("shrunk", []byte("one\ntwo\n"))
	for _, c := range []struct {
		piece msg.Piece
		lines int
	}{{msg.Piece{Path: path, Length: 100}, 2}, {msg.Piece{Path: path, Offset: 50, Length: 50}, 0}} {
		lines, err := w.readAll([]msg.Piece{c.piece}, 100)
		if _, ok := errors.AsType[*ChangedError](err); !ok || !strings.Contains(err.Error(), path) || len(lines) != c.lines {
			t.Errorf("%v: %d lines and error %v, want %d and that it is shorter than it was", c.piece, len(lines), err, c.lines)
		}
	}
	if lines, err := w.readAll([]msg.Piece{{Path: path, Length: 4}}, 100); err != nil || len(lines) != 1 {
		t.Errorf("a file that has grown: %q, %v, want the one line of the piece", lines, err)
	}
	_, err := w.readAll([]msg.Piece{{Path: path + "x", Length: 4}}, 100)
	if want := "reading " + path + "x: there is no such file or folder"; err == nil || err.Error() != want {
		t.Errorf("a file that is gone: error %v, want %s", err, want)
	}
}

func TestReadingEndsWithTheContext(t *testing.T) {
	w := newWorld(t)
	path := w.write("text", []byte("one\n"))
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("the job was cancelled")
	cancel(cause)
	r := Open(ctx, w.grants, &budget{}, cut(path, 4, nil))
	defer r.Close()
	if _, err := r.Next(make([]byte, 10)); !errors.Is(err, cause) {
		t.Errorf("error %v, want the context's cause", err)
	}
}
