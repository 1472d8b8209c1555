package quern

import (
	"encoding/binary"
	"fmt"
	"iter"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// shuffle moves records between tasks by their keys' bytes. The map side writes,
// the host partitions, sorts and delivers.
type shuffle struct {
	desc   abi.ShuffleDesc
	parent *node
	write  func(p int) // the map side for the parent's partition p
	reader *node       // name, site and functions of the RDD that reads it; nil before it is defined
}

func newShuffle(parent *node, lay *layout, sorted bool) *shuffle {
	s := &shuffle{parent: parent, desc: abi.ShuffleDesc{
		ID: nextID(&registry.shuffles), Partitioner: lay.kind, Partitions: lay.n, Bounds: lay.bounds, Sorted: sorted,
	}}
	trackShuffle(s)
	return s
}

func (s *shuffle) dep() abi.DepDesc {
	return abi.DepDesc{Parent: s.parent.id, Kind: abi.DepShuffle, Shuffle: &s.desc}
}

// definition is that of an RDD which reads the shuffle alone.
func (s *shuffle) definition(name string, lay *layout, entries []uintptr, err error) definition {
	return definition{
		name: name, parts: s.desc.Partitions, parents: []*node{s.parent}, deps: []abi.DepDesc{s.dep()},
		shuffles: []*shuffle{s}, layout: lay, entries: entries, err: err,
	}
}

// shuffleWriter writes the records of one map partition.
type shuffleWriter struct {
	*portWriter
	start, middle int // of the record being written
}

func (s *shuffle) writer(p int) *shuffleWriter {
	return &shuffleWriter{portWriter: openWriter(abi.PortShuffleWrite, s.desc.ID, p, "a shuffle")}
}

// A record is written by begin, the key's bytes, value, the value's bytes, end.

// headRoom is the header of a short record. The header comes first but is known
// last, so longer ones are moved.
const headRoom = 2

func (w *shuffleWriter) begin() {
	w.start = len(w.b)
	w.b = append(w.b, 0, 0)
}

func (w *shuffleWriter) value() { w.middle = len(w.b) }

func (w *shuffleWriter) end() {
	klen, vlen := w.middle-w.start-headRoom, len(w.b)-w.middle
	if klen|vlen < 0x80 {
		w.b[w.start], w.b[w.start+1] = byte(klen), byte(vlen)
	} else {
		w.longHeader(klen, vlen)
	}
	if w.full() {
		w.flush()
	}
}

func (w *shuffleWriter) longHeader(klen, vlen int) {
	if klen+vlen > abi.MaxRecord-2*binary.MaxVarintLen32 {
		fail(abi.ErrUser, fmt.Sprintf("a record of %d bytes cannot travel: the limit is %d", klen+vlen, abi.MaxRecord))
	}
	var head [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(klen))
	n += binary.PutUvarint(head[n:], uint64(vlen))
	body := w.b[w.start+headRoom:]
	w.b = append(w.b, head[:n-headRoom]...) // room
	copy(w.b[w.start+n:], body)
	copy(w.b[w.start:], head[:n])
}

// value reads a record's value into p. Decoders are used again, as they escape
// into the codecs: one for each record would be garbage.
func (d *decoder) value(c *codec, b []byte, p unsafe.Pointer) {
	*d = decoder{b: b}
	c.dec(d, p)
	if d.bad || d.pos != len(b) {
		fail(abi.ErrFailed, fmt.Sprintf("a shuffled value of %d bytes is damaged", len(b)))
	}
}

// key reads a record's key into p.
func (d *decoder) key(c *keyCodec, b []byte, p unsafe.Pointer) {
	*d = decoder{b: b}
	c.dec(d, p)
	if d.bad || d.pos != len(b) {
		fail(abi.ErrFailed, fmt.Sprintf("a shuffled key of %d bytes is damaged", len(b)))
	}
}

// repartition spreads elements evenly over n partitions: each map partition
// deals them out in turn, from a place of its own.
func repartition[T any](in *rdd[T], n int) *rdd[T] {
	parent := in.base()
	c, err := codecOf[T]()
	if e := checkPartitions(n); e != nil {
		err = e
	}
	s := newShuffle(parent, &layout{kind: abi.PartitionGiven, n: n}, false)
	s.write = func(p int) {
		w := s.writer(p)
		to := uint32(mix(uint64(p)+1) % uint64(n))
		slot := new(T)
		in.each(p)(func(v T) bool {
			*slot = v
			w.begin()
			w.b = binary.BigEndian.AppendUint32(w.b, to)
			w.value()
			c.enc(&w.encoder, unsafe.Pointer(slot))
			w.end()
			if to++; to == uint32(n) {
				to = 0
			}
			return true
		})
		w.close()
	}
	return &rdd[T]{
		node: define(s.definition("repartition", nil, nil, err)),
		each: func(p int) iter.Seq[T] { return shuffledValues[T](s, p, c) },
	}
}

// shuffledValues yields the values of a shuffle's partition, whatever the keys.
func shuffledValues[T any](s *shuffle, p int, c *codec) iter.Seq[T] {
	return func(yield func(T) bool) {
		in := openCursor(abi.PortShuffleRead, s.desc.ID, p, c.aliases)
		slot, d := new(T), new(decoder)
		for in.next() {
			var zero T
			*slot = zero
			d.value(c, in.value, unsafe.Pointer(slot))
			if !yield(*slot) {
				break
			}
		}
		in.close()
	}
}

// Repartition spreads the elements evenly over n partitions. It moves them all;
// Coalesce lowers the number without that.
func (r RDD[T]) Repartition(n int) RDD[T] { return RDD[T]{repartition(r.r, n)} }

// Distinct keeps one of each group of equal elements. Elements are compared as
// keys are (see the package comment).
func (r RDD[T]) Distinct(numPartitions ...int) RDD[T] { return RDD[T]{distinct(r.r, numPartitions)} }

func distinct[T any](in *rdd[T], asked []int) *rdd[T] {
	parent := in.base()
	n, err := shuffleParts(asked, parent)
	k, kerr := keyCodecOf[T](false)
	if kerr != nil {
		err = kerr
	}
	s := newShuffle(parent, hashLayout(n), true)
	s.write = func(p int) {
		w := s.writer(p)
		seen := newTable()
		var e encoder
		slot := new(T)
		in.each(p)(func(v T) bool {
			*slot = v
			e.b = e.b[:0]
			k.enc(&e, unsafe.Pointer(slot))
			if before := seen.len(); seen.find(e.b) == before {
				w.begin()
				w.b = append(w.b, e.b...)
				w.value()
				w.end()
				if seen.full() {
					seen.reset()
				}
			}
			return true
		})
		w.close()
	}
	return &rdd[T]{
		node: define(s.definition("distinct", nil, nil, err)),
		each: func(p int) iter.Seq[T] {
			return func(yield func(T) bool) {
				in := openCursor(abi.PortShuffleRead, s.desc.ID, p, k.aliases)
				var last []byte
				slot, d := new(T), new(decoder)
				for first := true; in.next(); {
					if !first && string(last) == string(in.key) {
						continue
					}
					first = false
					last = append(last[:0], in.key...)
					var zero T
					*slot = zero
					d.key(k, in.key, unsafe.Pointer(slot))
					if !yield(*slot) {
						break
					}
				}
				in.close()
			}
		},
	}
}
