package sched

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quern-project/quern/engine/msg"
)

// executor is one that has not been lost.
type executor struct {
	id    msg.ExecutorID
	slots int
	// running are its attempts, at most slots, in no particular order.
	running []*attempt
	lost    bool

	// The queue of executors with free slots.
	queued     bool
	prev, next *executor
}

// ExecutorAdded takes an executor into use which runs up to slots tasks at a
// time. It fails if slots is not positive, or the name is or was in use: an
// executor that comes back gets a new name.
func (s *Scheduler) ExecutorAdded(id msg.ExecutorID, slots int) error {
	if slots < 1 {
		return fmt.Errorf("add executor %s: %d slots, at least 1 is needed", id, slots)
	}
	if old, ok := s.executors[id]; ok {
		state := "is in use"
		if old == nil {
			state = "was lost"
		}
		return fmt.Errorf("add executor %s: an executor of that name %s; use a new name", id, state)
	}
	e := &executor{id: id, slots: slots, running: make([]*attempt, 0, slots)}
	s.executors[id] = e
	s.free.push(e)
	return nil
}

// ExecutorLost takes an executor out of use. Its tasks count as ended, with a
// failure of the given cause; what it still reports about them is ignored. The
// cause's kind, msg.FailExecutorLost if it is 0, says whether that counts as the
// tasks' failure. An unknown executor is ignored.
func (s *Scheduler) ExecutorLost(id msg.ExecutorID, cause msg.Failure) {
	e := s.executors[id]
	if e == nil {
		return
	}
	if cause.Kind == 0 {
		cause.Kind = msg.FailExecutorLost
	}
	s.executors[id] = nil
	e.lost = true
	if e.queued {
		s.free.remove(e)
	}
	for _, a := range byID(e.running) {
		s.end(a, msg.StateFailed, &msg.StatusUpdate{Failure: &cause})
	}
}

// byID returns the attempts in the order in which they were started.
func byID(attempts []*attempt) []*attempt {
	sorted := slices.Clone(attempts)
	slices.SortFunc(sorted, func(a, b *attempt) int { return cmp.Compare(a.id, b.id) })
	return sorted
}

// executorQueue is a list of executors with free slots, the one to be used next
// first.
type executorQueue struct {
	head, tail *executor
	len        int
}

func (q *executorQueue) push(e *executor) {
	e.queued, e.prev, e.next = true, q.tail, nil
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.next = e
	}
	q.tail = e
	q.len++
}

func (q *executorQueue) remove(e *executor) {
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.queued, e.prev, e.next = false, nil, nil
	q.len--
}

// rotate moves an executor that was given tasks to the end, or out if it has no
// free slot left.
func (q *executorQueue) rotate(e *executor) {
	q.remove(e)
	if len(e.running) < e.slots {
		q.push(e)
	}
}
