package quern

// The runtime's global random generator backs the top-level functions of
// math/rand and math/rand/v2, the order of map iteration and the seeds of new
// maps. A clone inherits its state from the driver, so without reseeding every
// task would draw the same numbers. There is no official way to seed it; what
// the SDK does instead is in random_wasip1.go.

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// spread makes the generator's four words of a seed.
func spread(seed uint64) (words [4]uint64) {
	for i := range words {
		seed += 0x9e3779b97f4a7c15
		words[i] = mix(seed)
	}
	return words
}
