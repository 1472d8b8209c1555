package dag

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/msg"
)

func TestADroppedShuffleIsForgottenWithItsImage(t *testing.T) {
	w := newWorld(t, Config{})
	reduced := w.define(0, w.shuffle(w.define(2), 3))
	w.submit(0, reduced, 10)
	w.runAll()
	if len(w.released) > 0 {
		t.Fatalf("images %v are released while the map stage may need them", w.released)
	}
	w.DropShuffles([]msg.ShuffleID{1, 1, 99})
	r := w.collect()
	if !slices.Equal(r.Remove, []msg.ShuffleID{1}) || !slices.Equal(w.released, []msg.ImageID{10}) {
		t.Errorf("removed %v, released %v", r.Remove, w.released)
	}
	if _, err := w.MapOutputs(1); err == nil {
		t.Error("the outputs of a shuffle that is gone are still known")
	}
	w.DropShuffles([]msg.ShuffleID{1})
	if r := w.collect(); !r.Empty() {
		t.Errorf("dropping it again has an effect: %+v", r)
	}
	// A job that reads it all the same gets it anew.
	w.submit(1, reduced, 11)
	if ran := w.runAll(); len(ran) != 2 || len(w.ended) != 2 || w.ended[1].Err != nil {
		t.Errorf("stages %v ran, jobs ended: %v", ran, w.ended)
	}
}

func TestADroppedShuffleStaysWhileAJobReadsIt(t *testing.T) {
	w := newWorld(t, Config{})
	first := w.define(0, w.shuffle(w.define(2), 3))
	second := w.define(0, w.shuffle(first, 3))
	w.submit(0, first, 10)
	w.runAll()
	w.submit(1, second, 11) // reads shuffle 1, which is there, and makes 2
	w.DropShuffles([]msg.ShuffleID{1, 2})
	if r := w.collect(); len(r.Remove) > 0 {
		t.Fatalf("shuffles %v are removed while a job reads them", r.Remove)
	}
	var removed []msg.ShuffleID
	for len(w.sets) > 0 {
		ts := w.sets[0]
		w.sets = w.sets[1:]
		for _, p := range ts.Partitions {
			if len(removed) > 0 {
				t.Fatalf("shuffles %v are removed before the job has ended", removed)
			}
			w.TaskEnded(w.finished(ts.Stage, p))
			removed = append(removed, w.collect().Remove...)
		}
	}
	slices.Sort(removed)
	if diff := cmp.Diff([]msg.ShuffleID{1, 2}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	slices.Sort(w.released)
	if !slices.Equal(w.released, []msg.ImageID{10, 11}) {
		t.Errorf("released %v", w.released)
	}
}

// A dropped shuffle that never ran holds no image.
func TestDroppingWhatNeverRan(t *testing.T) {
	w := newWorld(t, Config{})
	reduced := w.define(0, w.shuffle(w.define(2), 3))
	w.submit(0, reduced, 10)
	w.CancelJob(0, "enough")
	w.DropShuffles([]msg.ShuffleID{1})
	w.collect()
	late := w.finished(w.sets[0].Stage, 0)
	w.TaskEnded(late) // of a stage that is not there any more
	if r := w.collect(); !r.Empty() {
		t.Errorf("a late report has an effect: %+v", r)
	}
	if !slices.Equal(w.released, []msg.ImageID{10}) {
		t.Errorf("released %v", w.released)
	}
}
