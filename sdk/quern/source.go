package quern

import (
	"errors"
	"iter"
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// source defines an RDD without parents.
func (c *Context) source(name string, parts int, err error) node {
	return define(definition{name: name, ctx: c, parts: parts, err: err})
}

// sourceParts is the number of partitions of a source: what the user asked for,
// else quern.default.parallelism.
func (c *Context) sourceParts(asked []int) (int, error) {
	switch {
	case len(asked) == 1:
		return asked[0], checkPartitions(asked[0])
	case len(asked) > 1:
		return 1, errors.New("more than one number of partitions")
	case c == nil:
		return 1, nil
	}
	return c.parallelism, nil
}

// Parallelize makes an RDD of a slice. The slice stays in the driver's memory, of
// which every task has a copy; it is not copied here. Tasks see its elements as
// they are when the action starts.
func (c *Context) Parallelize[T any](s []T, numPartitions ...int) RDD[T] {
	n, err := c.sourceParts(numPartitions)
	return RDD[T]{&rdd[T]{
		node: c.source("parallelize", n, err),
		each: func(p int) iter.Seq[T] {
			return func(yield func(T) bool) {
				for _, v := range s[share(p, n, len(s)):share(p+1, n, len(s))] {
					if !yield(v) {
						return
					}
				}
			}
		},
	}}
}

// Range makes an RDD of the numbers start, start+step, ... up to but without
// end; down to it if step is negative.
func (c *Context) Range(start, end, step int64, numPartitions ...int) RDD[int64] {
	n, err := c.sourceParts(numPartitions)
	var length uint64 // up to 2^64-1
	switch {
	case step == 0:
		err = errors.New("the step is 0")
	case step > 0 && start < end:
		length = (uint64(end)-uint64(start)-1)/uint64(step) + 1
	case step < 0 && start > end:
		length = (uint64(start)-uint64(end)-1)/-uint64(step) + 1
	}
	return RDD[int64]{&rdd[int64]{
		node: c.source("range", n, err),
		each: func(p int) iter.Seq[int64] {
			return func(yield func(int64) bool) {
				q, r := length/uint64(n), length%uint64(n)
				from := q*uint64(p) + r*uint64(p)/uint64(n)
				to := q*uint64(p+1) + r*uint64(p+1)/uint64(n)
				v := start + int64(from)*step
				for range to - from {
					if !yield(v) {
						return
					}
					v += step
				}
			}
		},
	}}
}

// TextFile makes an RDD of the lines of text files, without their ends (LF or
// CRLF). path is a file, a folder or a glob; files ending in .gz and .zst are
// decompressed. The engine cuts the files into partitions; minPartitions asks
// for at least so many. Which file a line is from is not told: where that
// matters, make an RDD of each file and join them with Union.
func (c *Context) TextFile(path string, minPartitions ...int) RDD[string] {
	return c.TextFiles([]string{path}, minPartitions...)
}

// TextFiles is TextFile for several paths, in their order.
func (c *Context) TextFiles(paths []string, minPartitions ...int) RDD[string] {
	minimum, err := c.sourceParts(minPartitions)
	if len(minPartitions) == 0 {
		minimum = 0
	}
	if len(paths) == 0 {
		err = errors.New("no path")
	}
	r := &rdd[string]{node: define(definition{
		name: "textFile", ctx: c, text: &abi.TextDesc{Paths: paths, MinPartitions: minimum}, err: err,
	})}
	id := r.id
	r.each = func(p int) iter.Seq[string] {
		return func(yield func(string) bool) {
			in := openCursor(abi.PortText, id, p, true)
			for in.line() && yield(unsafe.String(unsafe.SliceData(in.value), len(in.value))) {
			}
			in.close()
		}
	}
	return RDD[string]{r}
}
