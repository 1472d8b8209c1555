package event

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quern-project/quern/engine/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder keeps what it is told.
type recorder struct {
	events []Event
}

func (r *recorder) On(e Event) { r.events = append(r.events, e) }

// tasks returns the numbers of the tasks that the events are about.
func (r *recorder) tasks() []msg.TaskID {
	var ids []msg.TaskID
	for _, e := range r.events {
		if e, ok := e.(TaskStarted); ok {
			ids = append(ids, e.Task)
		}
	}
	return ids
}

// blocked stops at its first event until it is released.
type blocked struct {
	recorder
	entered, release chan struct{}
	once             sync.Once
}

func newBlocked() *blocked {
	return &blocked{entered: make(chan struct{}), release: make(chan struct{})}
}

func (b *blocked) On(e Event) {
	b.once.Do(func() { close(b.entered); <-b.release })
	b.recorder.On(e)
}

func closeBus(t *testing.T, b *Bus) {
	t.Helper()
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEveryListenerIsToldEverythingInOrder(t *testing.T) {
	var first, second recorder
	bus := NewBus(4000, &first, ListenerFunc(second.On))
	var want []msg.TaskID
	for i := range msg.TaskID(1000) {
		bus.Post(TaskStarted{Task: i})
		want = append(want, i)
	}
	closeBus(t, bus)
	for name, r := range map[string]*recorder{"first": &first, "second": &second} {
		if diff := cmp.Diff(want, r.tasks()); diff != "" {
			t.Errorf("%s listener (-want +got):\n%s", name, diff)
		}
	}
	if bus.Dropped() != 0 || bus.Err() != nil {
		t.Errorf("%d dropped, %v", bus.Dropped(), bus.Err())
	}
}

func TestEventsBearTheTime(t *testing.T) {
	var r recorder
	bus := NewBus(100, &r)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bus.now = func() time.Time { now = now.Add(time.Second); return now }
	all := []Event{
		JobStarted{}, JobEnded{}, StageSubmitted{}, StageCompleted{}, TaskStarted{}, TaskEnded{},
		ExecutorAdded{}, ExecutorRemoved{},
	}
	for _, e := range all {
		bus.Post(e)
	}
	closeBus(t, bus)
	var want []Event
	for i, e := range all {
		want = append(want, e.stamped(time.Date(2026, 1, 2, 3, 4, 6+i, 0, time.UTC)))
	}
	if diff := cmp.Diff(want, r.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := r.events[5].(TaskEnded).Time; got.Second() != 11 {
		t.Errorf("the sixth event bears %v", got)
	}
}

// TestASlowListenerHarmsNobody: the others are told everything; it misses what
// its queue cannot hold, single tasks first, and learns what matters.
func TestASlowListenerHarmsNobody(t *testing.T) {
	slow, quick := newBlocked(), new(recorder)
	seen := make(chan struct{}, 1000)
	bus := NewBus(20, slow, ListenerFunc(func(e Event) { quick.On(e); seen <- struct{}{} }))
	bus.Post(JobStarted{})
	<-slow.entered
	<-seen
	for i := range msg.TaskID(100) {
		bus.Post(TaskStarted{Task: i})
		<-seen
	}
	bus.Post(JobEnded{})
	<-seen
	if got := bus.Dropped(); got != 90 {
		t.Errorf("%d events dropped, want 90", got)
	}
	for range 30 { // more than there is room for
		bus.Post(StageSubmitted{})
		<-seen
	}
	if got := bus.Dropped(); got != 90+21 {
		t.Errorf("%d events dropped, want 111", got)
	}
	close(slow.release)
	closeBus(t, bus)
	if len(quick.events) != 132 {
		t.Errorf("the quick listener was told %d events, want 132", len(quick.events))
	}
	if diff := cmp.Diff([]msg.TaskID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, slow.tasks()); diff != "" {
		t.Errorf("tasks that the slow listener knows (-want +got):\n%s", diff)
	}
	if _, ok := slow.events[11].(JobEnded); !ok || len(slow.events) != 21 {
		t.Errorf("the slow listener was told %d events, after the tasks %T", len(slow.events), slow.events[11])
	}
}

func TestFlushWaitsForWhatWasPosted(t *testing.T) {
	var r recorder
	release := make(chan struct{})
	bus := NewBus(100, ListenerFunc(func(e Event) { <-release; r.On(e) }), ListenerFunc(func(Event) { panic("oh no") }))
	for i := range msg.TaskID(5) {
		bus.Post(TaskStarted{Task: i})
	}
	flushed := make(chan int)
	go func() { bus.Flush(context.Background()); flushed <- len(r.events) }()
	for range 5 {
		select {
		case n := <-flushed:
			t.Fatalf("flushed when %d events were delivered", n)
		default:
		}
		release <- struct{}{}
	}
	if n := <-flushed; n != 5 {
		t.Errorf("flushed when %d events were delivered, want 5", n)
	}
	closeBus(t, bus)
	bus.Flush(t.Context()) // of nothing
	if len(r.events) != 5 {
		t.Errorf("the listener was told %d events", len(r.events))
	}
}

func TestFlushDoesNotWaitForEver(t *testing.T) {
	stuck := newBlocked()
	bus := NewBus(4, stuck)
	bus.Post(JobStarted{})
	<-stuck.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bus.Flush(ctx) // ends with its context
	for range 4 {
		bus.Post(JobEnded{})
	}
	bus.Flush(t.Context()) // ends because the queue is full
	close(stuck.release)
	closeBus(t, bus)
	if len(stuck.events) != 4 || bus.Dropped() != 1 {
		t.Errorf("delivered %d events, dropped %d", len(stuck.events), bus.Dropped())
	}
}

func TestAPanickingListenerHarmsNobody(t *testing.T) {
	var good recorder
	calls := 0
	bus := NewBus(100, ListenerFunc(func(Event) { calls++; panic("oh no") }), &good)
	for range 3 {
		bus.Post(JobStarted{})
	}
	closeBus(t, bus)
	if calls != 3 || len(good.events) != 3 {
		t.Errorf("the bad listener was called %d times, the good one %d times", calls, len(good.events))
	}
	const want = "event listener event.ListenerFunc has panicked on 3 events, first with: oh no"
	if err := bus.Err(); err == nil || err.Error() != want {
		t.Errorf("Err() = %v", err)
	}
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	stuck := newBlocked()
	bus := NewBus(10, stuck)
	for range 4 {
		bus.Post(JobStarted{})
	}
	<-stuck.entered
	ctx, cancel := context.WithCancelCause(t.Context())
	patience := errors.New("out of patience")
	cancel(patience)
	err := bus.Close(ctx)
	if !errors.Is(err, patience) || !strings.Contains(err.Error(), "3 events are left") {
		t.Errorf("Close = %v", err)
	}
	close(stuck.release)
	closeBus(t, bus)
	if len(stuck.events) != 4 {
		t.Errorf("delivered %d events in the end", len(stuck.events))
	}
}

func TestPostingAfterCloseDoesNothing(t *testing.T) {
	var r recorder
	bus := NewBus(10, &r)
	var posters sync.WaitGroup
	for range 4 {
		posters.Go(func() {
			for range 1000 {
				bus.Post(TaskEnded{})
			}
		})
	}
	closeBus(t, bus)
	n := len(r.events)
	bus.Post(JobEnded{})
	posters.Wait()
	if len(r.events) != n {
		t.Errorf("told %d events after Close", len(r.events)-n)
	}
}

func TestNobodyListens(t *testing.T) {
	bus := NewBus(0)
	if bus.Active() {
		t.Error("active without a listener")
	}
	bus.Post(JobStarted{})
	closeBus(t, bus)
	if n := testing.AllocsPerRun(100, func() {
		if bus.Active() {
			bus.Post(TaskEnded{})
		}
	}); n != 0 {
		t.Errorf("an event for nobody costs %v allocations", n)
	}
}

// BenchmarkPost is the time of posting a task's end to one listener.
func BenchmarkPost(b *testing.B) {
	bus := NewBus(DefaultCapacity, ListenerFunc(func(Event) {}))
	b.ReportAllocs()
	for b.Loop() {
		bus.Post(TaskEnded{Task: 7})
	}
	b.ReportMetric(float64(bus.Dropped())/float64(b.N), "dropped/op")
	if err := bus.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
