package quern

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/quern-project/quern/sdk/abi"
)

// Compression is how SaveAsTextFile compresses.
type Compression string

const (
	Plain Compression = ""
	Gzip  Compression = "gzip"
	Zstd  Compression = "zstd"
)

// SaveAsTextFile writes a folder with one file for each partition (part-00000
// and so on), one line for each element, and an empty file _SUCCESS when all is
// there. Strings and bytes are written as they are, pairs as "(key,value)",
// anything else as fmt.Print would. The folder must not exist.
func (r RDD[T]) SaveAsTextFile(path string, compression ...Compression) error {
	return saveAsTextFile(r.r, path, compression)
}

func saveAsTextFile[T any](in *rdd[T], path string, compression []Compression) error {
	const name = "saveAsTextFile"
	sink := &abi.SinkDesc{Path: path}
	var err error
	switch {
	case path == "":
		err = fmt.Errorf("%s at %s: no path", name, callSite())
	case len(compression) > 1:
		err = fmt.Errorf("%s at %s: more than one compression", name, callSite())
	case len(compression) == 1:
		sink.Compression = string(compression[0])
		if c := compression[0]; c != Plain && c != Gzip && c != Zstd {
			err = fmt.Errorf("%s at %s: unknown compression %q; there are quern.Plain, quern.Gzip and quern.Zstd",
				name, callSite(), string(c))
		}
	}
	if err != nil {
		return err
	}
	a := &action{id: nextID(&registry.actionIDs), name: name, rdd: in.base()}
	a.task = func(p int) { saveLines(a.id, p, in.each(p)) }
	return a.run(nil, sink, func(int, []byte) bool { return true })
}

func saveLines[T any](id uint32, p int, in iter.Seq[T]) {
	w := openWriter(abi.PortSink, id, p, "output")
	format := formatter[T]()
	in(func(v T) bool {
		w.b = append(format(w.b, v), '\n')
		if w.full() {
			w.flush()
		}
		return true
	})
	w.close()
}

// formatter returns a function that appends an element's text.
func formatter[T any]() func([]byte, T) []byte {
	var f any
	switch any(*new(T)).(type) {
	case string:
		f = func(b []byte, v string) []byte { return append(b, v...) }
	case []byte:
		f = func(b []byte, v []byte) []byte { return append(b, v...) }
	case int:
		f = func(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }
	case int64:
		f = func(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }
	default:
		return func(b []byte, v T) []byte { return fmt.Append(b, v) }
	}
	return f.(func([]byte, T) []byte)
}
