package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/quern-project/quern/engine/conf"
	"github.com/quern-project/quern/engine/dag"
	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/executor"
	"github.com/quern-project/quern/engine/files"
	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/engine/sink"
	"github.com/quern-project/quern/engine/source"
	"github.com/quern-project/quern/internal/scratchdir"
	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/image"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

// session is the application as its driver module sees it. It implements
// hostcall.Driver; all its methods are called on the guest's goroutine, and
// close after that has ended.
type session struct {
	options Options
	conf    *conf.Conf
	program *sandbox.Program

	// Set when the context is open.
	log      *slog.Logger
	bus      *event.Bus
	loop     *loop
	executor *executor.Executor
	localDir *scratchdir.Dir // for shuffle files

	images  images
	newest  *image.Image // the last capture, which makes the next one cheap
	jobs    map[uint32]*job
	nextJob msg.JobID

	// abandoned are jobs whose output folder was removed while tasks may still
	// have been writing to it.
	abandoned []*job
}

func newSession(o Options, p *sandbox.Program) *session {
	return &session{options: o, conf: o.Conf, program: p, log: o.Log, jobs: make(map[uint32]*job)}
}

// OpenContext implements hostcall.Driver: it starts the executors.
func (s *session) OpenContext(d abi.ContextDesc) error {
	if s.loop != nil {
		return errors.New("the job has a context already, and one is all that there can be")
	}
	settings := conf.JobSettings(d.Conf)
	if d.AppName != "" {
		settings = append(settings, conf.JobSettings(map[string]string{conf.AppName.Name(): d.AppName})...)
	}
	c, err := s.conf.With(settings)
	if err != nil {
		return err
	}
	dir, err := scratchdir.New(conf.LocalDir.Get(c), "quern-app-")
	if err != nil {
		return fmt.Errorf("making a folder for shuffle files (%s): %w", conf.LocalDir.Name(), err)
	}
	s.conf, s.localDir = c, dir
	s.bus = event.NewBus(event.DefaultCapacity, withLogListener(s.options.Listeners, s.log, conf.MaxTaskFailures(c))...)
	s.loop = newLoop(loopConfig{
		seed:          conf.Seed.Get(c),
		maxFailures:   conf.MaxTaskFailures(c),
		maxAttempts:   conf.StageMaxConsecutiveAttempts.Get(c),
		maxResultSize: int64(conf.DriverMaxResultSize.Get(c)),
		bus:           s.bus,
		log:           s.log,
		images:        &s.images,
	})
	link := &local{loop: s.loop, images: &s.images, encode: conf.TestEncodeMessages.Get(c)}
	cores := conf.MasterURL.Get(c).Slots
	link.executor = executor.New(executor.Config{
		ID:          localExecutor,
		Cores:       cores,
		Memory:      int64(conf.ExecutorMemory.Get(c)),
		Program:     s.program,
		Files:       s.options.Files,
		Driver:      link,
		TaskMemory:  int64(conf.TaskMemory.Get(c)),
		MaxResult:   int64(conf.DriverMaxResultSize.Get(c)),
		LocalDir:    dir.Path,
		Compression: compression(c),
		Faults: executor.Faults{
			Rate:        conf.TestFailTasks.Get(c),
			MaxFailures: conf.MaxTaskFailures(c),
			Seed:        conf.Seed.Get(c),
		},
		Log: s.log,
	})
	s.executor = link.executor
	s.loop.start(link, cores)
	s.log.Debug("context opened", "app", conf.AppName.Get(c), "sdk", d.SDK, "master", conf.MasterURL.Get(c), "seed", conf.Seed.Get(c))
	return nil
}

func compression(c *conf.Conf) string {
	if !conf.ShuffleCompress.Get(c) {
		return "none"
	}
	return conf.ShuffleCompressionCodec.Get(c)
}

// close ends what the context has started. Unfinished outputs are removed.
func (s *session) close() error {
	if s.loop == nil {
		return nil
	}
	var errs []error
	for handle, j := range s.jobs {
		errs = append(errs, s.endJob(handle, j, "the driver has ended"))
	}
	s.executor.Close()
	s.loop.close()
	for _, j := range s.abandoned {
		errs = append(errs, s.abandon(j))
	}
	if s.newest != nil {
		s.newest.Release()
	}
	s.images.close()
	errs = append(errs, s.bus.Close(context.Background()), s.localDir.Remove())
	return errors.Join(errs...)
}

// Conf implements hostcall.Driver.
func (s *session) Conf(key string) (string, bool) { return s.conf.Lookup(key) }

var errNoContext = fmt.Errorf("%w: the job has no context yet: call context_open first", hostcall.ErrBadArgument)

// DefineRDD implements hostcall.Driver.
func (s *session) DefineRDD(d abi.RDDDesc) (n int, err error) {
	if s.loop == nil {
		return 0, errNoContext
	}
	var text [][]msg.Piece
	if d.Text != nil {
		text, err = source.Plan(s.options.Files, *d.Text, source.Options{
			TargetBytes: int64(conf.FilesMaxPartitionBytes.Get(s.conf)),
		})
		if err != nil {
			return 0, err
		}
	}
	callErr := s.loop.call(func() { n, err = s.loop.graph.Define(d, text) })
	return n, errors.Join(callErr, err)
}

// RunJob implements hostcall.Driver.
func (s *session) RunJob(driver *sandbox.Instance, d abi.JobDesc) (uint32, error) {
	if s.loop == nil {
		return 0, errNoContext
	}
	id := s.nextJob
	spec := dag.Job{
		ID:         id,
		RDD:        msg.RDDID(d.RDD),
		Action:     d.Action,
		Name:       d.Name,
		CallSite:   d.CallSite,
		Partitions: d.Partitions,
	}
	var committed *committer
	if d.Sink != nil {
		path, err := s.options.Files.Abs(d.Sink.Path)
		if err != nil {
			return 0, err
		}
		spec.Sink = &msg.Sink{Path: path, Compression: d.Sink.Compression, Job: id}
		if err := sink.Begin(s.options.Files, *spec.Sink); err != nil {
			return 0, err
		}
		committed = &committer{grants: s.options.Files, sink: *spec.Sink}
	}
	img, err := driver.Capture(s.newest)
	if err != nil {
		return 0, errors.Join(captureError(err), committed.abort())
	}
	if s.newest != nil {
		s.newest.Release()
	}
	s.newest = img
	img.Retain()
	spec.Image = s.images.add(img)

	dropped := make([]msg.ShuffleID, len(d.Dropped))
	for i, id := range d.Dropped {
		dropped[i] = msg.ShuffleID(id)
	}
	j, err := s.loop.submit(spec, dropped, committed)
	if err != nil {
		s.images.drop(spec.Image)
		return 0, errors.Join(err, committed.abort())
	}
	s.nextJob++
	s.jobs[uint32(id)] = j
	return uint32(id), nil
}

// NextResult implements hostcall.Driver.
func (s *session) NextResult(ctx context.Context, handle uint32, buf []byte) (int, error) {
	j := s.jobs[handle]
	if j == nil {
		return 0, fmt.Errorf("%w: job %d is not running", hostcall.ErrBadArgument, handle)
	}
	n, err := j.next(ctx, buf)
	if err != nil && err != io.EOF {
		err = errors.Join(err, s.abandon(j))
		// What led to the failure is in the log before the driver speaks of it.
		patience, cancel := context.WithTimeout(ctx, time.Second)
		s.bus.Flush(patience)
		cancel()
	}
	return n, err
}

// abandon removes the output folder of a job that has not committed it. Tasks
// may still be writing there, so it is done once more at the end, when none is.
func (s *session) abandon(j *job) error {
	if j.closed || j.committer == nil {
		return nil
	}
	if !slices.Contains(s.abandoned, j) {
		s.abandoned = append(s.abandoned, j)
	}
	return j.committer.abort()
}

// CloseJob implements hostcall.Driver.
func (s *session) CloseJob(handle uint32) error {
	j := s.jobs[handle]
	if j == nil {
		return fmt.Errorf("%w: job %d is not running", hostcall.ErrBadArgument, handle)
	}
	return s.endJob(handle, j, "the driver wants no more results")
}

func (s *session) endJob(handle uint32, j *job, reason string) error {
	delete(s.jobs, handle)
	s.loop.cancel(j, reason)
	return s.abandon(j)
}

// committer carries out the commit of a job's output folder.
type committer struct {
	grants  *files.Grants
	sink    msg.Sink
	outputs []msg.SinkOutput
}

// commit makes the outputs the job's result.
func (c *committer) commit() error {
	if c == nil {
		return nil
	}
	return sink.Commit(c.grants, c.sink, c.outputs)
}

// abort removes all that the job has written.
func (c *committer) abort() error {
	if c == nil {
		return nil
	}
	return sink.Abort(c.grants, c.sink)
}

// driverSeed is what the driver's own randomness starts from.
func driverSeed(seed uint64) (s [32]byte) {
	binary.LittleEndian.PutUint64(s[:], seed)
	copy(s[8:], "quern driver")
	return s
}
