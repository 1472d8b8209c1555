package abi

import (
	"encoding/binary"
	"slices"
)

// The guest's half of the descriptors' encoding (RFC 8949, definite lengths,
// shortest heads). It is written out here because a CBOR library with its
// reflection would more than double a small job's module, and because the SDK
// must build from the standard library alone.

const (
	majorUint  = 0 << 5
	majorBytes = 2 << 5
	majorText  = 3 << 5
	majorArray = 4 << 5
	majorMap   = 5 << 5
)

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

// fields collects the entries of one map with integer keys, in ascending
// order, leaving out zero values.
type fields struct {
	n    uint64
	body []byte
}

func (f *fields) key(k uint64) { f.n++; f.body = appendHead(f.body, majorUint, k) }

func (f *fields) uint(k, v uint64) {
	if v != 0 {
		f.key(k)
		f.body = appendHead(f.body, majorUint, v)
	}
}

func (f *fields) text(k uint64, s string) {
	if s != "" {
		f.key(k)
		f.body = appendText(f.body, s)
	}
}

func (f *fields) bool(k uint64, v bool) {
	if v {
		f.key(k)
		f.body = append(f.body, 0xf5)
	}
}

func (f *fields) appendTo(b []byte) []byte {
	return append(appendHead(b, majorMap, f.n), f.body...)
}

func appendText(b []byte, s string) []byte {
	return append(appendHead(b, majorText, uint64(len(s))), s...)
}

// list writes v under key k unless it is empty.
func list[T any](f *fields, k uint64, v []T, one func([]byte, T) []byte) {
	if len(v) == 0 {
		return
	}
	f.key(k)
	f.body = appendHead(f.body, majorArray, uint64(len(v)))
	for _, e := range v {
		f.body = one(f.body, e)
	}
}

// AppendCBOR appends the descriptor's encoding to b.
func (d *ContextDesc) AppendCBOR(b []byte) []byte {
	var f fields
	f.uint(1, uint64(d.Version))
	f.text(2, d.SDK)
	f.text(3, d.AppName)
	if len(d.Conf) > 0 {
		f.key(4)
		f.body = appendHead(f.body, majorMap, uint64(len(d.Conf)))
		keys := make([]string, 0, len(d.Conf))
		for k := range d.Conf {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			f.body = appendText(appendText(f.body, k), d.Conf[k])
		}
	}
	return f.appendTo(b)
}

// AppendCBOR appends the descriptor's encoding to b.
func (d *RDDDesc) AppendCBOR(b []byte) []byte {
	var f fields
	f.uint(1, uint64(d.ID))
	f.text(2, d.Name)
	f.text(3, d.CallSite)
	f.uint(4, uint64(d.Partitions))
	list(&f, 5, d.Deps, func(b []byte, e DepDesc) []byte { return e.appendCBOR(b) })
	if d.Text != nil {
		f.key(6)
		f.body = d.Text.appendCBOR(f.body)
	}
	return f.appendTo(b)
}

func (d *DepDesc) appendCBOR(b []byte) []byte {
	var f fields
	f.uint(1, uint64(d.Parent))
	f.uint(2, uint64(d.Kind))
	f.uint(3, uint64(d.Start))
	if d.Shuffle != nil {
		f.key(4)
		f.body = d.Shuffle.appendCBOR(f.body)
	}
	return f.appendTo(b)
}

func (d *ShuffleDesc) appendCBOR(b []byte) []byte {
	var f fields
	f.uint(1, uint64(d.ID))
	f.uint(2, uint64(d.Partitioner))
	f.uint(3, uint64(d.Partitions))
	list(&f, 4, d.Bounds, func(b, e []byte) []byte {
		return append(appendHead(b, majorBytes, uint64(len(e))), e...)
	})
	f.bool(5, d.Sorted)
	return f.appendTo(b)
}

func (d *TextDesc) appendCBOR(b []byte) []byte {
	var f fields
	list(&f, 1, d.Paths, appendText)
	f.uint(2, uint64(d.MinPartitions))
	return f.appendTo(b)
}

// AppendCBOR appends the descriptor's encoding to b.
func (d *JobDesc) AppendCBOR(b []byte) []byte {
	var f fields
	f.uint(1, uint64(d.RDD))
	f.uint(2, uint64(d.Action))
	f.text(3, d.Name)
	f.text(4, d.CallSite)
	list(&f, 5, d.Partitions, func(b []byte, p int) []byte { return appendHead(b, majorUint, uint64(p)) })
	if d.Sink != nil {
		f.key(6)
		var s fields
		s.text(1, d.Sink.Path)
		s.text(2, d.Sink.Compression)
		f.body = s.appendTo(f.body)
	}
	list(&f, 7, d.Dropped, func(b []byte, id uint32) []byte { return appendHead(b, majorUint, uint64(id)) })
	return f.appendTo(b)
}
