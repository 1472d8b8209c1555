package driver_test

import (
	"testing"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/sdk/abi"
)

// TestShufflesThatTheDriverDropsAreForgotten: their files go while the job runs,
// and those of a shuffle that it keeps stay.
func TestShufflesThatTheDriverDropsAreForgotten(t *testing.T) {
	a := newApp(t)
	most := 0
	a.onPrint = func(string) { most = max(most, len(mapFiles(t, a, -1))) }
	a.run("dropping").succeeds()
	if most < 3 || most > 200 { // 303 if none were dropped
		t.Errorf("there were up to %d map outputs at a time", most)
	}
	maps := 0
	for _, s := range eventsOf[event.StageSubmitted](a) {
		if s.Kind == abi.TaskShuffle {
			maps++
		}
	}
	if maps != 301 {
		t.Errorf("%d map stages ran, want each of 301 once", maps)
	}
}

// TestImagesAreLimited: a driver that keeps shuffles and changes much memory
// between its actions takes no more of the machine than it may.
func TestImagesAreLimited(t *testing.T) {
	a := newApp(t, "quern.driver.imageMemory=64m")
	a.run("hoarding").fails("out of memory: with this action, the images of the driver's memory would take ",
		"and the limit is 64 MiB: keep less in the driver, drop RDDs that were shuffled, or raise it with --conf quern.driver.imageMemory=SIZE")
}
