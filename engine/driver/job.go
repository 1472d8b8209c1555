package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/msg"
)

// job is one call of an action between the loop, which fills in results as
// they come, and the guest's goroutine, which takes them in order.
type job struct {
	id        msg.JobID
	committer *committer // nil if the action writes no output folder

	mu      sync.Mutex
	changed chan struct{} // holds one element when something has changed
	results [][][]byte    // by index; nil elements have not come, or are taken
	ended   bool
	err     error

	// The guest's goroutine's.
	taken   int      // indexes taken out of results
	current [][]byte // batches of the index taken last
	closed  bool     // the output folder is committed, or given up
}

func newJob(id msg.JobID, partitions int, c *committer) *job {
	return &job{id: id, committer: c, changed: make(chan struct{}, 1), results: make([][][]byte, partitions)}
}

// none is the result of a task that wrote no batch.
var none = [][]byte{}

// deliver takes one result.
func (j *job) deliver(r *dag.JobResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	batches := r.Result
	if batches == nil {
		batches = none
	}
	j.results[r.Index] = batches
	if j.committer != nil && r.Output != nil {
		j.committer.outputs = append(j.committer.outputs, *r.Output)
	}
	j.notify()
}

// end takes the job's end. A later one is ignored.
func (j *job) end(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended {
		j.ended, j.err = true, err
		j.notify()
	}
}

func (j *job) notify() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// next fills buf with as many whole batches as are there and fit, waiting for
// the first. See hostcall.Driver.NextResult.
func (j *job) next(ctx context.Context, buf []byte) (n int, err error) {
	for {
		n, more, err := j.fill(buf)
		if n > 0 || err != nil {
			return n, err
		}
		if !more {
			return 0, j.finish()
		}
		select {
		case <-j.changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// fill copies what is there. more says that something may still come.
func (j *job) fill(buf []byte) (n int, more bool, err error) {
	for {
		for len(j.current) > 0 {
			b := j.current[0]
			if n+len(b) > len(buf) {
				if n == 0 {
					n = len(b) // too large on its own: say how large
				}
				return n, true, nil
			}
			n += copy(buf[n:], b)
			j.current[0] = nil
			j.current = j.current[1:]
		}
		batches, more, err := j.take()
		if batches == nil {
			if n > 0 {
				return n, true, nil // what ended the job is told next time
			}
			return 0, more, err
		}
		j.current = batches
	}
}

// take answers the next result in order, nil if it has not come.
func (j *job) take() (batches [][]byte, more bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.taken < len(j.results) && j.results[j.taken] != nil && j.err == nil {
		batches, j.results[j.taken] = j.results[j.taken], nil
		j.taken++
		return batches, true, nil
	}
	return nil, !j.ended, j.err
}

// finish commits the output folder and answers io.EOF.
func (j *job) finish() error {
	if !j.closed {
		if err := j.committer.commit(); err != nil {
			return err
		}
		j.closed = true
	}
	return io.EOF
}

// failure is a job's error as the guest is told it: the engine's one line, and
// below it the guest's own stack, if a closure failed.
func failure(e *dag.JobError) error {
	var f *msg.Failure
	if !errors.As(e, &f) || f.Stack == "" {
		return e
	}
	return fmt.Errorf("%w\n\t%s", e, strings.ReplaceAll(f.Stack, "\n", "\n\t"))
}
