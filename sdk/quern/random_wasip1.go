package quern

import (
	"math/rand/v2"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// generator has the layout of internal/chacha8rand.State.
type generator struct {
	buf  [randomWords]uint64
	seed [4]uint64
	i    uint32 // the next value to give
	n    uint32 // values in buf
	c    uint32 // ChaCha8's block counter
}

const (
	randomWords  = 32
	randomStep   = 4  // c advances by this for each filling of buf
	randomRounds = 16 // when c gets here, buf's end becomes the seed
)

// random is the runtime's generator, nil if it was not found. A guest has one
// thread, hence one generator, which lies in the data segment.
var random *generator

// lowest is a variable of the data segment, a place to start looking from.
var lowest byte

// findRandom looks for the generator in the linear memory: values that it has
// just given stand one after the other in its buffer, and the fields behind the
// buffer agree with that. It costs about half a millisecond and is done once, in
// the driver.
func findRandom() {
	for range 4 { // a refill between the draws hides them
		if random = searchRandom(); random != nil {
			return
		}
	}
	hostLog(abi.LogWarn, "quern: the Go runtime's random generator was not found in this module, so math/rand gives "+
		"every task the same numbers; seed your own generators, and report the Go version")
}

func searchRandom() *generator {
	drawn := [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}
	// The heap begins behind all data.
	end := uintptr(unsafe.Pointer(new([1 << 10]byte)))
	base := unsafe.Pointer(&lowest)
	at := func(addr uintptr) unsafe.Pointer { return unsafe.Add(base, int(addr)-int(uintptr(base))) }
	const low = 4 << 10 // nothing of Go's lies below
	for addr := uintptr(low); addr+unsafe.Sizeof(generator{}) < end; addr += 8 {
		if *(*uint64)(at(addr)) != drawn[0] || *(*[3]uint64)(at(addr)) != drawn {
			continue
		}
		for first := range uintptr(randomWords - 2) {
			start := addr - first*8
			if start < low {
				break
			}
			g := (*generator)(at(start))
			if g.i == uint32(first)+3 && g.n <= randomWords && g.i <= g.n && g.c < randomRounds && g.c%randomStep == 0 {
				return g
			}
		}
	}
	return nil
}

// reseedRandom makes the generator start a stream of its own for a seed.
func reseedRandom(seed uint64) {
	if g := random; g != nil {
		g.seed = spread(seed)
		// Used up, and one step before the first block: the next draw fills buf
		// from the seed.
		g.i, g.n, g.c = randomWords, randomWords, ^uint32(randomStep-1)
	}
}
