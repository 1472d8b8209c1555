//go:build !wasip1

package quern

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quern-project/quern/sdk/abi"
)

// nativeSink is an output folder in the making: it grows under another name
// next to its place and is renamed when it is complete, so that nobody sees half
// of it.
type nativeSink struct {
	target  string
	suffix  string // of its files
	scratch string // removed at the end; empty until the first file or commit
	folder  string // in scratch, becomes target
}

// newNativeSink refuses what could not be written in the end; it creates
// nothing.
func newNativeSink(d *abi.SinkDesc) (*nativeSink, error) {
	s := &nativeSink{target: filepath.Clean(d.Path)}
	switch d.Compression {
	case "":
	case "gzip":
		s.suffix = ".gz"
	case "zstd":
		return nil, fmt.Errorf("save to %s: zstd is not available natively, "+
			"because the SDK uses the standard library alone: use quern run, or gzip", d.Path)
	default:
		return nil, badArgument("save to %s: unknown compression %q: there are gzip and zstd", d.Path, d.Compression)
	}
	if d.Path == "" {
		return nil, badArgument("save: the path is empty")
	}
	if isURL(d.Path) {
		return nil, badArgument("save to %s: this version reads and writes local files only: give a path", d.Path)
	}
	return s, s.checkFree()
}

func (s *nativeSink) checkFree() error {
	switch _, err := os.Lstat(s.target); {
	case err == nil:
		return fmt.Errorf("save to %s: it exists already, and output never replaces anything: "+
			"choose another folder or remove it first", s.target)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("save to %s: %w", s.target, err)
	}
	return nil
}

// prepare makes the folder that the files go to.
func (s *nativeSink) prepare() error {
	if s.scratch != "" {
		return nil
	}
	parent := filepath.Dir(s.target)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return fmt.Errorf("save to %s: %w", s.target, err)
	}
	scratch, err := os.MkdirTemp(parent, "."+filepath.Base(s.target)+"-")
	if err != nil {
		return fmt.Errorf("save to %s: %w", s.target, err)
	}
	s.scratch, s.folder = scratch, filepath.Join(scratch, "output")
	if err := os.Mkdir(s.folder, 0o777); err != nil {
		return fmt.Errorf("save to %s: %w", s.target, err)
	}
	return nil
}

// commit puts the folder in its place.
func (s *nativeSink) commit() error {
	defer s.abort()
	if err := s.prepare(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.folder, "_SUCCESS"), nil, 0o666); err != nil {
		return fmt.Errorf("save to %s: %w", s.target, err)
	}
	if err := s.checkFree(); err != nil {
		return err
	}
	if err := os.Rename(s.folder, s.target); err != nil {
		return fmt.Errorf("save to %s: %w", s.target, err)
	}
	return nil
}

// abort removes all that has not been committed.
func (s *nativeSink) abort() {
	if s.scratch != "" {
		os.RemoveAll(s.scratch)
	}
}

// create opens a partition's file.
func (s *nativeSink) create(partition int) (*sinkPort, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.folder, fmt.Sprintf("part-%05d%s", partition, s.suffix)),
		os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("save to %s: %w", s.target, err)
	}
	p := &sinkPort{sink: s, file: f, buffer: bufio.NewWriterSize(f, abi.BatchSize)}
	p.to = p.buffer
	if s.suffix != "" {
		p.gzip = gzip.NewWriter(p.buffer)
		p.to = p.gzip
	}
	return p, nil
}

// sinkPort writes one file.
type sinkPort struct {
	sink   *nativeSink
	file   *os.File
	buffer *bufio.Writer
	gzip   *gzip.Writer // nil without compression
	to     io.Writer    // gzip or buffer
}

func (p *sinkPort) write(b []byte) error {
	if _, err := p.to.Write(b); err != nil {
		return fmt.Errorf("save to %s: %w", p.sink.target, err)
	}
	return nil
}

func (p *sinkPort) close() error {
	var err error
	if p.gzip != nil {
		err = p.gzip.Close()
	}
	if err := errors.Join(err, p.buffer.Flush(), p.file.Close()); err != nil {
		return fmt.Errorf("save to %s: %w", p.sink.target, err)
	}
	return nil
}

// abandon only closes the file: the job that failed removes it.
func (p *sinkPort) abandon() { p.file.Close() }
