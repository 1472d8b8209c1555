package main

import "encoding/binary"

// summary says of records in a row what validate wants to know. Two summaries
// merge into that of both rows, so each task makes one of its partition, and
// the driver merges them, which also looks at the borders.
type summary struct {
	Records         int64
	Checksum        uint64 // sum of the records' hashes
	Duplicates      int64  // records with the key of the one before
	Disordered      int64  // records with a smaller key than the one before
	FirstDisordered int64  // its number, from 0
	First, Last     string // keys
}

// add appends a record to the row.
func (s *summary) add(line string) *summary {
	key := keyOf(line)
	if s.Records == 0 {
		s.First = key
	} else {
		s.compare(key)
	}
	s.Records++
	s.Checksum += hash(line)
	s.Last = key
	return s
}

// merge appends another row.
func (s *summary) merge(t *summary) *summary {
	switch {
	case t.Records == 0:
		return s
	case s.Records == 0:
		return t
	}
	s.compare(t.First)
	if s.Disordered == 0 && t.Disordered > 0 {
		s.FirstDisordered = s.Records + t.FirstDisordered
	}
	s.Records += t.Records
	s.Checksum += t.Checksum
	s.Duplicates += t.Duplicates
	s.Disordered += t.Disordered
	s.Last = t.Last
	return s
}

// compare looks at the key of the record that follows.
func (s *summary) compare(key string) {
	switch {
	case key > s.Last:
	case key == s.Last:
		s.Duplicates++
	default:
		if s.Disordered == 0 {
			s.FirstDisordered = s.Records
		}
		s.Disordered++
	}
}

// hash is FNV-1a, but for taking eight bytes at a time.
func hash(line string) uint64 {
	const prime = 0x100000001b3
	h := uint64(0xcbf29ce484222325)
	b := []byte(line)
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * prime
		h ^= h >> 32
	}
	for _, c := range b {
		h = (h ^ uint64(c)) * prime
	}
	return h
}
