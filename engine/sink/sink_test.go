package sink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a folder that a job may write to, and a memory that counts.
type world struct {
	t      *testing.T
	folder string
	grants *files.Grants
	used   int64
	limit  int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return worldIn(t, folder)
}

func worldIn(t *testing.T, folder string) *world {
	t.Helper()
	g, err := files.New(folder, nil, []string{folder})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, folder: folder, grants: g, limit: 1 << 30}
	t.Cleanup(func() {
		g.Close()
		if w.used != 0 {
			t.Errorf("%d bytes of memory not returned", w.used)
		}
	})
	return w
}

var errNoMemory = errors.New("over the limit of this test")

func (w *world) Acquire(n int64) error {
	if w.used+n > w.limit {
		return errNoMemory
	}
	w.used += n
	return nil
}

func (w *world) Release(n int64) { w.used -= n }

func (w *world) sink(name, compression string) msg.Sink {
	return msg.Sink{Path: filepath.Join(w.folder, name), Compression: compression, Job: 7}
}

// attempt writes the output of one attempt.
func (w *world) attempt(s msg.Sink, partition int, task msg.TaskID, text string) msg.SinkOutput {
	w.t.Helper()
	wr, err := NewWriter(w.grants, w, s, partition, task)
	if err != nil {
		w.t.Fatal(err)
	}
	// In uneven parts.
	for rest := []byte(text); len(rest) > 0; {
		n := min(len(rest), 1+len(rest)*2/3)
		if _, err := wr.Write(rest[:n]); err != nil {
			w.t.Fatal(err)
		}
		rest = rest[n:]
	}
	out, err := wr.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// content is all that is in the folder: files with their text, folders with a
// slash.
func (w *world) content() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.folder {
			return err
		}
		rel, _ := filepath.Rel(w.folder, path)
		if d.IsDir() {
			all[rel+"/"] = ""
			return nil
		}
		text, err := os.ReadFile(path)
		all[rel] = string(text)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) expect(want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.content()); diff != "" {
		w.t.Errorf("in the folder (-want +got):\n%s", diff)
	}
}

func (w *world) begin(s msg.Sink) {
	w.t.Helper()
	if err := Begin(w.grants, s); err != nil {
		w.t.Fatal(err)
	}
}

func TestOutputAppearsWhenTheJobCommits(t *testing.T) {
	w := newWorld(t)
	s := w.sink("a/out", "")
	w.begin(s)
	late, err := NewWriter(w.grants, w, s, 1, 9)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := NewWriter(w.grants, w, s, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	failed, err := NewWriter(w.grants, w, s, 0, 11)
	if err != nil {
		t.Fatal(err)
	}
	failed.Write([]byte("half of"))
	failed.Abort()
	failed.Abort()
	outputs := []msg.SinkOutput{
		w.attempt(s, 1, 3, "one\n"), w.attempt(s, 0, 2, ""), w.attempt(s, 123456, 5, "many\n"),
	}
	w.attempt(s, 1, 4, "one\n") // a second attempt that also finished
	for name := range w.content() {
		if strings.HasPrefix(name, "a/out/") && name != "a/out/" && !strings.HasPrefix(name, "a/out/_temporary/") {
			t.Errorf("%s can be seen before the commit", name)
		}
	}
	if err := Commit(w.grants, s, outputs); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a/": "", "a/out/": "", "a/out/_SUCCESS": "",
		"a/out/part-00000": "", "a/out/part-00001": "one\n", "a/out/part-123456": "many\n",
	}
	w.expect(want)

	// Attempts that outlive the job leave nothing.
	if _, err := late.Write([]byte("late\n")); err != nil {
		t.Error(err)
	}
	if _, err := late.Close(); err != nil {
		t.Error(err)
	}
	killed.Abort()
	if _, err := NewWriter(w.grants, w, s, 1, 12); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an attempt after the commit: error %v, want fs.ErrNotExist", err)
	}
	w.expect(want)
}

func TestAnExistingTargetIsRefused(t *testing.T) {
	w := newWorld(t)
	s := w.sink("out", "")
	for name, text := range map[string]string{"file": "F", "full/x": "X"} {
		path := filepath.Join(w.folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(w.folder, "empty"), 0o777), os.Symlink("nowhere", filepath.Join(w.folder, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "full", "empty", "link"} {
		err := Begin(w.grants, w.sink(name, ""))
		if want := "saving to " + filepath.Join(w.folder, name) + ": it exists already, "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s...", name, err, want)
		}
		if e, ok := errors.AsType[*ExistsError](err); !ok || e.Unfinished {
			t.Errorf("%s: error %#v, want an ExistsError of something finished", name, err)
		}
	}
	w.begin(s)
	err := Begin(w.grants, s)
	if e, ok := errors.AsType[*ExistsError](err); !ok || !e.Unfinished || !strings.Contains(err.Error(), "_temporary without _SUCCESS") {
		t.Errorf("one that was left unfinished: error %v, want one that says so", err)
	}
	if err := Commit(w.grants, s, []msg.SinkOutput{w.attempt(s, 0, 1, "x")}); err != nil {
		t.Errorf("the refused job has disturbed the one that runs: %v", err)
	}
	if e, ok := errors.AsType[*ExistsError](Begin(w.grants, s)); !ok || e.Unfinished {
		t.Errorf("one that is finished: error %#v", e)
	}
}

func TestRefusedAndImpossibleTargets(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.folder, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(filepath.Dir(w.folder), "other")
	for want, s := range map[string]msg.Sink{
		"saving to " + outside + ": writing " + outside + " is not allowed: add --allow-write " + outside: {Path: outside},
		"saving to " + w.folder + "/file/x: writing " + w.folder + "/file/x: not a directory":             w.sink("file/x", ""),
		"saving to " + w.folder + `/x: there is no compression "lzo": use gzip, zstd or none`:             w.sink("x", "lzo"),
	} {
		if err := Begin(w.grants, s); err == nil || err.Error() != want {
			t.Errorf("error\n     %v\nwant %s", err, want)
		}
	}
	w.expect(map[string]string{"file": ""})
}

func TestAbortRemovesWhatBeginMade(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.folder, "there"), 0o777); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := w.sink("there/a/b/out", "gzip")
		w.begin(s)
		w.attempt(s, 0, 1, "x")
		killed, err := NewWriter(w.grants, w, s, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Abort(w.grants, s), Abort(w.grants, s)); err != nil {
			t.Error(err)
		}
		w.expect(map[string]string{"there/": ""})
		killed.Abort()
	}
	// What somebody else has put there stays.
	s := w.sink("there/a/out", "")
	w.begin(s)
	if err := os.WriteFile(filepath.Join(s.Path, "note"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Abort(w.grants, s); err != nil {
		t.Error(err)
	}
	w.expect(map[string]string{"there/": "", "there/a/": "", "there/a/out/": "", "there/a/out/note": "mine"})
	// And a target that is not the job's is not touched at all.
	if err := Abort(w.grants, w.sink("there/a/out", "")); err != nil {
		t.Error(err)
	}
	w.expect(map[string]string{"there/": "", "there/a/": "", "there/a/out/": "", "there/a/out/note": "mine"})
}

func TestACommitThatFailsTakesEverythingBack(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *world, s msg.Sink, outputs []msg.SinkOutput) []msg.SinkOutput
		want  string
	}{
		"file gone": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			os.Remove(o[1].Path)
			return o
		}, "there is no such file or folder"},
		"file cut short": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			os.Truncate(o[1].Path, 1)
			return o
		}, "has 1 bytes, and its task wrote 4"},
		"two of one partition": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			return append(o, w.attempt(s, 1, 9, "one\n"))
		}, "partition 1 has two outputs"},
		"not an output": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			o[0].Path = filepath.Join(w.folder, "keep")
			return o
		}, "keep is not an output of partition 0 of this job"},
		"of another partition": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			o[0].Partition = 5
			return o
		}, "is not an output of partition 5 of this job"},
		"up and away": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			o[0].Path = filepath.Dir(o[0].Path) + "/../../../keep"
			return o
		}, "is not an output of partition 0 of this job"},
		"a place is taken": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			os.Mkdir(filepath.Join(s.Path, "part-00002"), 0o777)
			return o
		}, "file exists"},
		"no mark can be made": {func(w *world, s msg.Sink, o []msg.SinkOutput) []msg.SinkOutput {
			os.Mkdir(filepath.Join(s.Path, "_SUCCESS"), 0o777)
			return o
		}, "file exists"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := os.WriteFile(filepath.Join(w.folder, "keep"), []byte("K"), 0o666); err != nil {
				t.Fatal(err)
			}
			s := w.sink("a/out", "")
			w.begin(s)
			outputs := []msg.SinkOutput{w.attempt(s, 0, 1, "zero\n"), w.attempt(s, 1, 2, "one\n"), w.attempt(s, 2, 3, "two\n")}
			outputs = c.spoil(w, s, outputs)
			err := Commit(w.grants, s, outputs)
			if err == nil || !strings.HasPrefix(err.Error(), "committing the output to "+s.Path+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			want := map[string]string{"keep": "K"}
			if name == "a place is taken" { // by somebody else, who keeps it
				want = map[string]string{"keep": "K", "a/": "", "a/out/": "", "a/out/part-00002/": ""}
			}
			w.expect(want)
		})
	}
}

// Attempts that nobody waits for, because they are late or about to be killed,
// may start and end at any moment of a commit or an abort.
func TestCommitAndAbortAmongRunningAttempts(t *testing.T) {
	for round := range 20 {
		w := newWorld(t)
		s := w.sink("out", "")
		w.begin(s)
		accepted := w.attempt(s, 0, 1, "zero\n")
		var running sync.WaitGroup
		for worker := range 4 {
			running.Go(func() {
				for i := range 1000 {
					wr, err := NewWriter(w.grants, unlimited{}, s, 0, msg.TaskID(1000*(worker+1)+i))
					if err != nil {
						if !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("a late attempt: error %v, want fs.ErrNotExist", err)
						}
						return
					}
					wr.Write([]byte("late\n"))
					if _, err := wr.Close(); err != nil {
						t.Errorf("a late attempt: %v", err)
					}
				}
			})
		}
		want := map[string]string{}
		if round%2 == 0 {
			if err := Commit(w.grants, s, []msg.SinkOutput{accepted}); err != nil {
				t.Error(err)
			}
			want = map[string]string{"out/": "", "out/_SUCCESS": "", "out/part-00000": "zero\n"}
		} else if err := Abort(w.grants, s); err != nil {
			t.Error(err)
		}
		running.Wait()
		if err := Abort(w.grants, s); err != nil {
			t.Errorf("once more: %v", err)
		}
		w.expect(want)
	}
}

func TestCompressedOutput(t *testing.T) {
	text := strings.Repeat("a line of output, again and again\n", 50_000)
	for compression, unpack := range map[string]func(io.Reader) (io.Reader, error){
		"":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) {
			d, err := zstd.NewReader(r)
			if err != nil {
				return nil, err
			}
			t.Cleanup(d.Close)
			return d, nil
		},
	} {
		var packed [][]byte
		for i := range 2 { // the same bytes each time
			w := newWorld(t)
			s := w.sink(fmt.Sprintf("out%d", i), compression)
			w.begin(s)
			outputs := []msg.SinkOutput{w.attempt(s, 0, msg.TaskID(i), text), w.attempt(s, 1, msg.TaskID(i+5), "")}
			if err := Commit(w.grants, s, outputs); err != nil {
				t.Fatal(err)
			}
			suffix := map[string]string{"": "", "gzip": ".gz", "zstd": ".zst"}[compression]
			for part, want := range []string{text, ""} {
				content, err := os.ReadFile(filepath.Join(s.Path, partName(part)+suffix))
				if err != nil {
					t.Fatal(err)
				}
				if int64(len(content)) != outputs[part].Bytes {
					t.Errorf("%q: %d bytes reported, %d are there", compression, outputs[part].Bytes, len(content))
				}
				r, err := unpack(bytes.NewReader(content))
				if err != nil {
					t.Fatalf("%q, part %d: %v", compression, part, err)
				}
				got, err := io.ReadAll(r)
				if string(got) != want || err != nil {
					t.Errorf("%q, part %d: %d bytes of text, %v, want %d", compression, part, len(got), err, len(want))
				}
				packed = append(packed, content)
			}
		}
		if !slices.EqualFunc(packed[:2], packed[2:], bytes.Equal) {
			t.Errorf("%q: two writers made other bytes of the same text", compression)
		}
	}
}

func TestWritersDrawTheirMemory(t *testing.T) {
	w := newWorld(t)
	for _, compression := range []string{"", "gzip", "zstd"} {
		s := w.sink("out"+compression, compression)
		w.begin(s)
		w.limit = bufferSize / 2
		if _, err := NewWriter(w.grants, w, s, 0, 1); !errors.Is(err, errNoMemory) {
			t.Errorf("%q: error %v, want the memory's", compression, err)
		}
		w.limit = 1 << 30
		wr, err := NewWriter(w.grants, w, s, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if w.used < bufferSize {
			t.Errorf("%q: drew %d bytes", compression, w.used)
		}
		if _, err := wr.Close(); err != nil {
			t.Error(err)
		}
		if _, err := wr.Write([]byte("x")); err == nil {
			t.Error("a closed writer takes bytes")
		}
		if _, err := wr.Close(); err == nil {
			t.Error("a closed writer closes again")
		}
	}
}
