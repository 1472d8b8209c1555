package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/zeebo/xxh3"

	"github.com/quern-project/quern/engine/msg"
)

// A page lists up to pageEntries segments that lie one after the other, each as
// four uvarints: partition (less the one before), length, records, length of
// the records of its largest block. A directory entry is
//
//	0  first partition u32
//	4  number of segments u32
//	8  offset of the first segment u64
//	16 offset of the page u64
//	24 length of the page u32
//	28 checksum of the page u64
//
// and the trailer, with which the file ends,
//
//	0  shuffle u32
//	4  map partition u32
//	8  task u64
//	16 partitions of the shuffle u32
//	20 pages u32
//	24 offset of the directory u64
//	32 records u64
//	40 checksum of the directory u64
//	48 checksum of bytes 0-47 u64
//	56 magic
const (
	pageEntries  = 512
	dirEntrySize = 36
	trailerSize  = 64
	magic        = "QNSHUF01"
)

// identity is which map output a file holds.
type identity struct {
	shuffle    msg.ShuffleID
	mapPart    int
	task       msg.TaskID
	partitions int
}

// indexWriter makes a file's pages, directory and trailer.
type indexWriter struct {
	page    []byte
	entries uint32
	first   uint32
	last    uint32
	data    int64 // offset of the page's first segment
	dir     []byte
	records int64
}

// add lists a segment that was just written.
func (x *indexWriter) add(w *blockWriter, partition uint32, s segment) error {
	if x.entries == 0 {
		x.first, x.last, x.data = partition, partition, s.offset
	}
	x.page = binary.AppendUvarint(x.page, uint64(partition-x.last))
	x.page = binary.AppendUvarint(x.page, uint64(s.length))
	x.page = binary.AppendUvarint(x.page, uint64(s.records))
	x.page = binary.AppendUvarint(x.page, uint64(s.maxRaw))
	x.last = partition
	x.records += s.records
	if x.entries++; x.entries < pageEntries {
		return nil
	}
	return x.endPage(w)
}

func (x *indexWriter) endPage(w *blockWriter) error {
	le := binary.LittleEndian
	d := le.AppendUint32(x.dir, x.first)
	d = le.AppendUint32(d, x.entries)
	d = le.AppendUint64(d, uint64(x.data))
	d = le.AppendUint64(d, uint64(w.position()))
	d = le.AppendUint32(d, uint32(len(x.page)))
	x.dir = le.AppendUint64(d, xxh3.Hash(x.page))
	err := w.append(x.page)
	x.page, x.entries = x.page[:0], 0
	return err
}

// finish completes the file.
func (x *indexWriter) finish(w *blockWriter, id identity) error {
	if x.entries > 0 {
		if err := x.endPage(w); err != nil {
			return err
		}
	}
	le := binary.LittleEndian
	t := le.AppendUint32(nil, uint32(id.shuffle))
	t = le.AppendUint32(t, uint32(id.mapPart))
	t = le.AppendUint64(t, uint64(id.task))
	t = le.AppendUint32(t, uint32(id.partitions))
	t = le.AppendUint32(t, uint32(len(x.dir)/dirEntrySize))
	t = le.AppendUint64(t, uint64(w.position()))
	t = le.AppendUint64(t, uint64(x.records))
	t = le.AppendUint64(t, xxh3.Hash(x.dir))
	t = le.AppendUint64(t, xxh3.Hash(t))
	t = append(t, magic...)
	if err := w.append(x.dir); err != nil {
		return err
	}
	if err := w.append(t); err != nil {
		return err
	}
	return w.flush()
}

// indexReader finds segments. Its buffer is reused from file to file.
type indexReader struct {
	tail []byte // the end of the file
	at   int64  // its offset
}

// tailSize is read first: mostly it has all that is needed.
const tailSize = 8 << 10

var (
	errTrailer = errors.New("the file does not end as a shuffle file does: it is truncated or corrupted")
	errIndex   = errors.New("the checksum of the file's index differs: the file is corrupted")
)

// find answers the segment of a partition in a file of size bytes; false if it
// has no records.
func (x *indexReader) find(f io.ReaderAt, size int64, id identity, partition uint32) (segment, bool, error) {
	none := segment{}
	if size < trailerSize {
		return none, false, errTrailer
	}
	if x.tail == nil {
		x.tail = make([]byte, tailSize)
	}
	x.at = max(0, size-tailSize)
	x.tail = x.tail[:size-x.at]
	if n, err := f.ReadAt(x.tail, x.at); err == io.EOF {
		return none, false, truncated(x.at + int64(n))
	} else if err != nil {
		return none, false, err
	}
	le := binary.LittleEndian
	t := x.tail[len(x.tail)-trailerSize:]
	if string(t[56:]) != magic || xxh3.Hash(t[:48]) != le.Uint64(t[48:]) {
		return none, false, errTrailer
	}
	found := identity{
		shuffle:    msg.ShuffleID(le.Uint32(t[0:])),
		mapPart:    int(le.Uint32(t[4:])),
		task:       msg.TaskID(le.Uint64(t[8:])),
		partitions: int(le.Uint32(t[16:])),
	}
	if found != id {
		return none, false, fmt.Errorf("the file is another one: shuffle %d, map %d, task %d, %d partitions, instead of "+
			"shuffle %d, map %d, task %d, %d partitions", found.shuffle, found.mapPart, found.task, found.partitions,
			id.shuffle, id.mapPart, id.task, id.partitions)
	}
	pages, dirAt := int(le.Uint32(t[20:])), le.Uint64(t[24:])
	if dirAt > uint64(size) || int64(dirAt)+int64(pages)*dirEntrySize+trailerSize != size {
		return none, false, errTrailer
	}
	dir, err := x.read(f, int64(dirAt), pages*dirEntrySize)
	if err != nil {
		return none, false, err
	}
	if xxh3.Hash(dir) != le.Uint64(t[40:]) {
		return none, false, errIndex
	}
	n := sort.Search(pages, func(i int) bool { return le.Uint32(dir[i*dirEntrySize:]) > partition }) - 1
	if n < 0 {
		return none, false, nil
	}
	d := dir[n*dirEntrySize:]
	data, pageAt, pageLen := le.Uint64(d[8:]), le.Uint64(d[16:]), le.Uint32(d[24:])
	if data > pageAt || pageAt > dirAt || uint64(pageLen) > dirAt-pageAt {
		return none, false, errIndex
	}
	page, err := x.read(f, int64(pageAt), int(pageLen))
	if err != nil {
		return none, false, err
	}
	if xxh3.Hash(page) != le.Uint64(d[28:]) {
		return none, false, errIndex
	}
	return findInPage(page, le.Uint32(d[0:]), le.Uint32(d[4:]), int64(data), int64(pageAt), partition)
}

// findInPage answers a partition's segment in a page whose first segment, that
// of partition first, begins at data, and whose last one ends at limit.
func findInPage(page []byte, first, entries uint32, data, limit int64, partition uint32) (segment, bool, error) {
	at := uint64(first)
	s := segment{offset: data}
	for range entries {
		var v [4]uint64
		for i := range v {
			n := 0
			if v[i], n = binary.Uvarint(page); n <= 0 {
				return segment{}, false, errIndex
			}
			page = page[n:]
		}
		at += v[0]
		if v[1] > uint64(limit-s.offset) || v[3] > maxBlock {
			return segment{}, false, errIndex
		}
		s.length, s.records, s.maxRaw = int64(v[1]), int64(v[2]), int(v[3])
		if at == uint64(partition) {
			return s, true, nil
		}
		if at > uint64(partition) {
			break
		}
		s.offset += s.length
	}
	return segment{}, false, nil
}

// read answers n bytes at an offset, from the tail if it has them.
func (x *indexReader) read(f io.ReaderAt, at int64, n int) ([]byte, error) {
	if at >= x.at {
		return x.tail[at-x.at:][:n], nil
	}
	b := make([]byte, n)
	if n, err := f.ReadAt(b, at); err == io.EOF {
		return nil, truncated(at + int64(n))
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// truncated is what is wrong with a file that ends too early.
func truncated(at int64) error {
	return fmt.Errorf("the file ends at offset %d: it is truncated: %w", at, io.ErrUnexpectedEOF)
}
