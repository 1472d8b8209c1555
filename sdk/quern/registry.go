package quern

import (
	"math"
	"sync"
	"sync/atomic"
)

// registry is what the host's numbers mean in this memory: the task entry gets
// an id and finds the closure. It has to be a package variable, because a task
// starts from a bare export in a copy of the driver's memory.
//
// The lock is only ever held for a few instructions that cannot block, never
// during a host call: a lock that is held when the memory is copied would be
// held in the copy for ever.
var registry struct {
	rdds, shuffles, actionIDs atomic.Uint32 // the last numbers given

	mu      sync.Mutex
	actions map[uint32]*action // that are running

	task atomic.Pointer[task] // that is running in this memory

	memory uint64 // the limit that the collector was told, in bytes
}

// nextID takes the next number, from 1.
func nextID(last *atomic.Uint32) uint32 {
	id := last.Add(1)
	if id == math.MaxUint32 {
		panic("quern: out of identifiers")
	}
	return id
}

func registerAction(a *action) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.actions == nil {
		registry.actions = map[uint32]*action{}
	}
	registry.actions[a.id] = a
}

func unregisterAction(a *action) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.actions, a.id)
}

func findAction(id uint32) *action {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	return registry.actions[id]
}

// findShuffle looks in the lineages of the running actions. RDDs are not
// registered themselves, so that the driver's collector frees those that the
// user has dropped.
func findShuffle(id uint32) *shuffle {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, a := range registry.actions {
		if s := a.shuffles[id]; s != nil {
			return s
		}
	}
	return nil
}

// lineageShuffles collects the shuffles that n is made of, by id.
func lineageShuffles(n *node) map[uint32]*shuffle {
	found := map[uint32]*shuffle{}
	seen := map[*node]bool{n: true}
	for todo := []*node{n}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, s := range last.shuffles {
			found[s.desc.ID] = s
		}
		for _, p := range last.parents {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return found
}
