package driver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// What the job "shuffle" prints when all is well.
const sums = "[(0,71071) (1,71214) (2,71357) (3,71500) (4,71643) (5,71786) (6,70929)]\n"

// mapFiles are the data files of a map partition, any if it is negative.
func mapFiles(t *testing.T, a *app, partition int) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(a.local, "quern-app-*", "shuffle_*.data"))
	if err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`shuffle_\d+_(\d+)`)
	return slices.DeleteFunc(all, func(path string) bool {
		m := of.FindStringSubmatch(filepath.Base(path))
		return m == nil || partition >= 0 && m[1] != string(rune('0'+partition))
	})
}

// flip changes one bit in the middle of a file.
func flip(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err == nil {
		b[len(b)/4] ^= 4
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// ran lists how often each map partition was finished, and how often a task
// failed because it could not read the shuffle.
func ran(a *app) (maps map[int]int, lost int) {
	stages := map[msg.StageID]abi.TaskKind{}
	maps = map[int]int{}
	for _, e := range a.events {
		switch e := e.(type) {
		case event.StageSubmitted:
			stages[e.Stage.Stage] = e.Kind
		case event.TaskEnded:
			if stages[e.Stage.Stage] == abi.TaskShuffle && e.State == msg.StateFinished {
				maps[e.Partition]++
			}
			if e.Failure != nil && e.Failure.Kind == msg.FailFetch {
				lost++
			}
		}
	}
	return maps, lost
}

func TestALostMapOutputIsComputedAgain(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"a flipped bit": flip,
		"a missing file": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		},
		"a truncated file": func(t *testing.T, path string) {
			if err := os.Truncate(path, 100); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t)
			damaged := false
			a.onPrint = func(line string) {
				if line+"\n" != sums || damaged {
					return
				}
				damaged = true
				files := mapFiles(t, a, 2)
				if len(files) != 1 {
					t.Errorf("map partition 2 has the files %v", files)
					return
				}
				damage(t, files[0])
			}
			a.run("shuffle").succeeds()
			if diff := cmp.Diff(sums+sums+"ok\n", a.stdout.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			maps, lost := ran(a)
			if diff := cmp.Diff(map[int]int{0: 1, 1: 1, 2: 2, 3: 1}, maps); diff != "" {
				t.Errorf("how often each map task ran (-want +got):\n%s", diff)
			}
			if warned := strings.Count(a.log.String(), "WARN shuffle data is lost\n"); lost == 0 || warned != lost {
				t.Errorf("%d tasks have noticed, and %d warnings were given", lost, warned)
			}
		})
	}
}

func TestAMapOutputThatIsLostAgainAndAgainFailsTheJob(t *testing.T) {
	a := newApp(t)
	var mu sync.Mutex
	broken := map[string]bool{}
	// A map task's file is there when what it has printed comes to the log, and
	// nobody has read it yet.
	a.onLog = func(line string) {
		if !strings.HasSuffix(line, "map 2") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, path := range mapFiles(t, a, 2) {
			if !broken[path] {
				broken[path] = true
				flip(t, path)
			}
		}
	}
	a.run("shuffle").fails("failed: stage 1 (reduceByKey at main.go", " could not read its input in 4 attempts in a row; last: shuffle 1: partition ",
		"of the output of map 2 (task ", "is lost: "+a.local, "the block's checksum differs: the file is corrupted")
	if len(broken) != 4 {
		t.Errorf("%d files were made and broken, want 4", len(broken))
	}
	maps, _ := ran(a)
	if maps[0] != 1 || maps[1] != 1 || maps[3] != 1 {
		t.Errorf("map tasks whose output was whole ran again: %v", maps)
	}
}
