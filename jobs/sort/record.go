package main

import "encoding/binary"

// A record is a line of 99 characters, 100 bytes with its end, laid out as
// gensort -a does: a random key, the record's number, filler.
const (
	recordSize = 100
	keySize    = 10
)

// keyOf is the key of a line, which is all of a line that is shorter.
func keyOf(line string) string { return line[:min(keySize, len(line))] }

const hexDigits = "0123456789ABCDEF"

// record makes the record of a number, whichever task asks for it.
func record(number int64) string {
	random := mix(uint64(number))
	var b [recordSize - 1]byte
	printable(b[0:5], random)
	printable(b[5:10], mix(random))
	b[10], b[11] = ' ', ' '
	for i, n := 43, uint64(number); i >= 12; i-- {
		b[i] = hexDigits[n&15]
		n >>= 4
	}
	b[44], b[45] = ' ', ' '
	for i := 46; i < 98; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], 0x01010101*uint32(hexDigits[random&15]))
		random >>= 4
	}
	b[98] = '.'
	return string(b[:])
}

// printable fills b, five bytes, with characters from ' ' to '~'. It takes
// random as a fraction of 48 bits and moves a digit in base 95 across the point
// with each multiplication.
func printable(b []byte, random uint64) {
	const point = 48
	for i := range b {
		random = random & (1<<point - 1) * 95
		b[i] = ' ' + byte(random>>point)
	}
}

// mix is SplitMix64: it makes a random number of each number.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
