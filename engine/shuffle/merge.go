package shuffle

import (
	"bytes"
	"errors"

	"github.com/quern-project/quern/engine/memory"
)

// merger merges the records of one partition of several runs by key. Of equal
// keys those of the earlier run come first. It is a tree of losers.
type merger struct {
	cursors []cursor // in the order of the runs
	// tree[0] is the cursor with the least record; tree[i] the loser of the match
	// at node i, whose children are nodes 2i and 2i+1. Leaf i is node len+i.
	tree []int32
}

// reset starts with the cursors, each at its first record.
func (m *merger) reset() {
	n := len(m.cursors)
	m.tree = m.tree[:0]
	for range max(n, 1) {
		m.tree = append(m.tree, -1)
	}
	for i := range m.cursors {
		m.insert(int32(i))
	}
}

// insert lets a cursor play from its leaf up to where nobody has played yet.
func (m *merger) insert(winner int32) {
	for node := (int(winner) + len(m.cursors)) / 2; node > 0; node /= 2 {
		loser := m.tree[node]
		if loser < 0 {
			m.tree[node] = winner
			return
		}
		if m.less(loser, winner) {
			m.tree[node], winner = winner, loser
		}
	}
	m.tree[0] = winner
}

// top is the cursor at the least record; nil when all are done.
func (m *merger) top() *cursor {
	if len(m.cursors) == 0 {
		return nil
	}
	if c := &m.cursors[m.tree[0]]; !c.done {
		return c
	}
	return nil
}

// next moves the top cursor on and finds the new top.
func (m *merger) next() error {
	winner := m.tree[0]
	if err := m.cursors[winner].advance(); err != nil {
		return err
	}
	prefix := m.cursors[winner].prefix
	for node := (int(winner) + len(m.cursors)) / 2; node > 0; node /= 2 {
		loser := m.tree[node]
		p := m.cursors[loser].prefix
		if p > prefix || p == prefix && !m.lessTied(loser, winner) {
			continue
		}
		m.tree[node], winner, prefix = winner, loser, p
	}
	m.tree[0] = winner
	return nil
}

func (m *merger) less(i, j int32) bool {
	a, b := &m.cursors[i], &m.cursors[j]
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return m.lessTied(i, j)
}

// lessTied orders cursors with the same prefix.
func (m *merger) lessTied(i, j int32) bool {
	a, b := &m.cursors[i], &m.cursors[j]
	switch {
	case a.done || b.done:
		if a.done != b.done {
			return b.done
		}
	case a.klen == longKey && b.klen == longKey:
		if c := bytes.Compare(a.key()[8:], b.key()[8:]); c != 0 {
			return c < 0
		}
	case a.klen != b.klen:
		return a.klen < b.klen
	}
	return i < j
}

// openRuns opens runs and loads the first block of each. When memory is refused
// it answers those that are open, together with the refusal.
func openRuns(mem *memory.Task, d *decompressor, runs []*run) ([]*blockReader, error) {
	open := make([]*blockReader, 0, len(runs))
	for _, r := range runs {
		b, err := openRun(mem, d, r)
		if err == nil {
			open = append(open, b)
			_, err = b.load()
		}
		if err != nil {
			if !refused(err) {
				closeRuns(open)
				return nil, err
			}
			return open, err
		}
	}
	return open, nil
}

func closeRuns(open []*blockReader) {
	for _, b := range open {
		b.close()
	}
}

// refused says whether err is a refusal of memory.
func refused(err error) bool {
	var limit *memory.LimitError
	var pool *memory.PoolError
	return errors.As(err, &limit) || errors.As(err, &pool)
}

// mergeRuns writes the records of open runs to w, partition by partition, and
// calls end after each. Runs are merged by key if sorted, else put one after
// the other.
func mergeRuns(w *blockWriter, open []*blockReader, sorted bool, end func(partition uint32, s segment) error) error {
	live := make([]*blockReader, 0, len(open)) // with a block loaded
	for _, b := range open {
		if !b.ended {
			live = append(live, b)
		}
	}
	var m merger
	for len(live) > 0 {
		p := live[0].header.partition
		for _, b := range live[1:] {
			p = min(p, b.header.partition)
		}
		w.begin(p)
		var err error
		if sorted {
			err = m.merge(w, live, p)
		} else {
			err = concatenate(w, live, p)
		}
		if err != nil {
			return err
		}
		s, err := w.end()
		if err != nil {
			return err
		}
		if err := end(p, s); err != nil {
			return err
		}
		n := 0
		for _, b := range live {
			if !b.ended {
				live[n] = b
				n++
			}
		}
		live = live[:n]
	}
	return nil
}

// merge writes the records of one partition.
func (m *merger) merge(w *blockWriter, live []*blockReader, partition uint32) error {
	m.cursors = m.cursors[:0]
	for _, b := range live {
		if b.header.partition == partition {
			c := cursor{blocks: b}
			if err := c.start(); err != nil {
				return err
			}
			m.cursors = append(m.cursors, c)
		}
	}
	m.reset()
	for c := m.top(); c != nil; c = m.top() {
		if err := w.add(c.current()); err != nil {
			return err
		}
		if err := m.next(); err != nil {
			return err
		}
	}
	return nil
}

// concatenate copies the blocks of one partition as they are.
func concatenate(w *blockWriter, live []*blockReader, partition uint32) error {
	for _, b := range live {
		for !b.ended && b.header.partition == partition {
			if err := w.write(b.header, b.stored); err != nil {
				return err
			}
			if _, err := b.load(); err != nil {
				return err
			}
		}
	}
	return nil
}
