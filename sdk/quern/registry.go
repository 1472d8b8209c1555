package quern

import (
	"math"
	"runtime"
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
	made    int                // shuffles, since the collector last looked for dropped ones
	dropped []uint32           // shuffles that the host has not been told of

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

// collectShuffles is how many shuffles are made before the driver's collector is
// run, which otherwise sees no reason to in a driver that has little memory: their
// data, and the memory that their map tasks ran on, lie with the host.
const collectShuffles = 64

// trackShuffle notes when s is dropped by the user, as the collector finds out.
func trackShuffle(s *shuffle) {
	if !forks {
		return
	}
	registry.mu.Lock()
	registry.made++
	registry.mu.Unlock()
	runtime.AddCleanup(s, func(id uint32) {
		registry.mu.Lock()
		defer registry.mu.Unlock()
		registry.dropped = append(registry.dropped, id)
	}, s.desc.ID)
}

// takeDropped answers the shuffles that have been dropped, once.
func takeDropped() []uint32 {
	registry.mu.Lock()
	many := registry.made >= collectShuffles
	if many {
		registry.made = 0
	}
	registry.mu.Unlock()
	if many {
		runtime.GC()
		runtime.Gosched() // to the cleanups
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	dropped := registry.dropped
	registry.dropped = nil
	return dropped
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
