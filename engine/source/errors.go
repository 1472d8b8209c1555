package source

import (
	"errors"
	"fmt"
	"io"

	"github.com/quern-project/quern/engine/files"
)

// DataError is a compressed file that cannot be unpacked.
type DataError struct {
	Path        string
	Compression string // "gzip" or "zstd"
	Offset      int64  // how far the file was understood, in bytes as they are on disk
	Cause       error  // io.ErrUnexpectedEOF if the file ends early
}

func (e *DataError) Error() string {
	if errors.Is(e.Cause, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("reading %s: its %s data ends early, at byte %d of the file: it is truncated",
			e.Path, e.Compression, e.Offset)
	}
	return fmt.Sprintf("reading %s: bad %s data at or before byte %d of the file: %v", e.Path, e.Compression, e.Offset, e.Cause)
}

func (e *DataError) Unwrap() error { return e.Cause }

// ChangedError is a file that has become shorter since it was dealt out.
type ChangedError struct {
	Path       string
	Want, Have int64 // bytes
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("reading %s: it had %d bytes or more when the job began and has %d now: "+
		"input must not change while a job reads it", e.Path, e.Want, e.Have)
}

// LongLineError is a line longer than abi.MaxRecord.
type LongLineError struct {
	Path   string
	Offset int64 // where it begins in the text, unpacked
	Limit  int   // abi.MaxRecord
}

func (e *LongLineError) Error() string {
	return fmt.Sprintf("reading %s: the line that begins at byte %d of the text is longer than %d bytes, the most that a record may have",
		e.Path, e.Offset, e.Limit)
}

// explain says what an error of reading the present piece means.
func (r *Reader) explain(err error) error {
	if err == nil {
		return nil
	}
	if c := compressionOf(r.path); c != plain && r.unpack.failed(err) {
		return &DataError{Path: r.path, Compression: c.String(), Offset: r.unpack.offset(&r.file), Cause: err}
	}
	return files.Explain("reading", r.path, err)
}
