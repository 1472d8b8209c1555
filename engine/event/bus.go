package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Bus carries events to listeners. Every listener has a goroutine and a bounded
// queue of its own: posting never waits. When a queue is full its next event is
// dropped and counted. Events of single tasks are dropped first: the second
// half of a queue is kept for the few others, so that a listener which is
// late by some thousand tasks still learns that the job has ended.
type Bus struct {
	now    func() time.Time
	queues []*queue

	mu     sync.RWMutex // held for writing only to close
	closed bool
}

type queue struct {
	listener Listener
	events   chan Event // and flush marks
	done     chan struct{}
	dropped  atomic.Int64
	panics   atomic.Int64
	first    atomic.Pointer[string] // panic's text
}

// DefaultCapacity is a queue's length in events that is enough for listeners
// which keep up on the whole.
const DefaultCapacity = 16 << 10

// NewBus returns a bus to these listeners, and starts a goroutine for each,
// which Close ends. capacity is the length of each listener's queue in events,
// at least 2.
func NewBus(capacity int, listeners ...Listener) *Bus {
	b := &Bus{now: time.Now}
	for _, l := range listeners {
		q := &queue{
			listener: l,
			events:   make(chan Event, max(capacity, 2)),
			done:     make(chan struct{}),
		}
		b.queues = append(b.queues, q)
		go q.deliver()
	}
	return b
}

// Active says whether anyone listens. Whoever has many events to post asks
// first, and does not build them for nobody.
func (b *Bus) Active() bool { return len(b.queues) > 0 }

// Post queues an event for each listener, stamped with the time. It never
// waits. Events of one goroutine are delivered in the order of posting. After
// Close it does nothing.
func (b *Bus) Post(e Event) {
	if len(b.queues) == 0 {
		return
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return
	}
	e = e.stamped(b.now())
	for _, q := range b.queues {
		q.put(e)
	}
}

func (q *queue) put(e Event) {
	if e.perTask() && len(q.events) >= cap(q.events)/2 {
		q.dropped.Add(1)
		return
	}
	select {
	case q.events <- e:
	default:
		q.dropped.Add(1)
	}
}

func (q *queue) deliver() {
	defer close(q.done)
	for e := range q.events {
		q.on(e)
	}
}

// on delivers one event. A listener that panics misses that event and is told
// the next ones.
func (q *queue) on(e Event) {
	if mark, ok := e.(flushMark); ok {
		close(mark.reached)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprint(p)
			q.first.CompareAndSwap(nil, &text)
			q.panics.Add(1)
		}
	}()
	q.listener.On(e)
}

// flushMark is an event for the bus itself: what was posted before it has been
// delivered when it is reached.
type flushMark struct {
	Event
	reached chan struct{}
}

// Flush waits until what was posted before has been delivered, or ctx ends. A
// listener that is so late that its queue is full is not waited for.
func (b *Bus) Flush(ctx context.Context) {
	var marks []flushMark
	b.mu.RLock()
	for _, q := range b.queues {
		if b.closed {
			break
		}
		mark := flushMark{reached: make(chan struct{})}
		select {
		case q.events <- mark:
			marks = append(marks, mark)
		default:
		}
	}
	b.mu.RUnlock()
	for _, mark := range marks {
		select {
		case <-mark.reached:
		case <-ctx.Done():
			return
		}
	}
}

// Dropped returns how many events listeners have missed because their queue was
// full, summed over all listeners.
func (b *Bus) Dropped() int64 {
	var n int64
	for _, q := range b.queues {
		n += q.dropped.Load()
	}
	return n
}

// Err says which listeners have panicked, how often, and why the first time. It
// is nil if none has.
func (b *Bus) Err() error {
	var errs []error
	for _, q := range b.queues {
		if n := q.panics.Load(); n > 0 {
			errs = append(errs, fmt.Errorf("event listener %T has panicked on %d events, first with: %s",
				q.listener, n, *q.first.Load()))
		}
	}
	return errors.Join(errs...)
}

// Close takes no more events, and waits until the queued ones are delivered and
// the listeners' goroutines have ended. If ctx ends first, it returns an error
// that says how many events are still queued; they are delivered later, or
// never if the listener does not return. Closing twice is harmless.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		for _, q := range b.queues {
			close(q.events)
		}
	}
	b.mu.Unlock()
	for _, q := range b.queues {
		select {
		case <-q.done:
			continue
		default:
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			left := 0
			for _, q := range b.queues {
				left += len(q.events)
			}
			return fmt.Errorf("close event bus: a listener is too slow, %d events are left: %w", left, context.Cause(ctx))
		}
	}
	return nil
}
