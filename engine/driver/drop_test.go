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
