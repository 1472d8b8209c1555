package dag

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/graph"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/sdk/abi"
)

// stage is a map stage or a job's result stage.
type stage struct {
	id msg.StageID
	// desc is what the attempts share. Its image is set when the first is submitted.
	desc    msg.Stage
	parents []*stage // the map stages of the shuffles that it reads

	// Of a map stage: its shuffle, and the outputs of those partitions that are
	// in have. Whoever was given the outputs shares them: then they are copied
	// before they change.
	shuffle *graph.Shuffle
	outputs []msg.MapOutput
	shared  bool
	// Of a result stage: its job.
	job *job

	// have holds the partitions that are done, by their place in the stage's
	// order; missing is the number of the others.
	have    bitset
	missing int

	state stageState
	// attempts counts the submissions; failed those in a row that could not read
	// their input.
	attempts int
	failed   int
	// leftovers says that an attempt has failed while tasks of it may be running.
	leftovers bool
	// submittedFor is the first job that the current attempt was submitted for.
	submittedFor msg.JobID
	// Running: pending holds the partitions that the current attempt has still
	// to settle. They are all missing.
	pending      bitset
	pendingCount int
	// Waiting: awaited is the number of parents whose waiters hold this stage.
	awaited int
	waiters []*stage

	// jobs are those that need the stage, by ID. Without one it does not run.
	jobs []*job
}

type stageState uint8

const (
	idle    stageState = iota
	waiting            // for parents
	running            // the current attempt has been submitted and is not over
)

// nameStage gives "stage 4 (map at main.go:9)" after the stage's last RDD. The
// action of a result stage is named by whoever names the job.
func (d *Scheduler) nameStage(s *stage) string {
	r := d.graph.RDD(s.desc.RDD)
	return fmt.Sprintf("stage %d%s", s.id, where(r.Name, r.CallSite))
}

// current is the last attempt that was submitted.
func (s *stage) current() msg.StageAttempt {
	return msg.StageAttempt{Stage: s.id, Attempt: s.attempts - 1}
}

// isCurrent says whether that attempt is the one which is running.
func (s *stage) isCurrent(a msg.StageAttempt) bool {
	return s.state == running && a == s.current()
}

// partition returns the partition at a place in the stage's order.
func (s *stage) partition(i int) int {
	if s.job != nil && s.job.Partitions != nil {
		return s.job.Partitions[i]
	}
	return i
}

func (s *stage) register(i int, o msg.MapOutput) {
	s.own()
	s.outputs[i] = o
	s.have.add(i)
	s.missing--
}

func (s *stage) unregister(i int) {
	s.own()
	s.outputs[i] = msg.MapOutput{}
	s.have.remove(i)
	s.missing++
}

// own makes sure that nobody else looks at the outputs.
func (s *stage) own() {
	if s.shared {
		s.outputs, s.shared = slices.Clone(s.outputs), false
	}
}

// MapOutputs returns where the outputs of a shuffle lie, once all of them are
// there. The reply is shared and must not be changed; it stays as it is when
// outputs are lost later. A *MissingOutputsError says that some are missing.
func (d *Scheduler) MapOutputs(id msg.ShuffleID) (msg.MapOutputsReply, error) {
	s := d.byShuffle[id]
	if s == nil {
		if d.graph.Shuffle(id) == nil {
			return msg.MapOutputsReply{}, fmt.Errorf("map outputs of shuffle %d: there is no such shuffle", id)
		}
		p := d.graph.Shuffle(id).Parent
		return msg.MapOutputsReply{}, &MissingOutputsError{
			Shuffle: id, Name: p.Name, CallSite: p.CallSite, Missing: p.Partitions, Total: p.Partitions,
		}
	}
	if s.missing > 0 {
		return msg.MapOutputsReply{}, &MissingOutputsError{
			Shuffle: id, Name: s.desc.Name, CallSite: s.desc.CallSite, Missing: s.missing, Total: len(s.outputs),
		}
	}
	s.shared = true
	return msg.MapOutputsReply{Outputs: s.outputs}, nil
}

// newStages makes the result stage of a job, and the map stages before it that
// there are not yet. Parents are numbered before their children.
func (d *Scheduler) newStages(j *job) *stage {
	var ordinal uint64
	add := func(s *stage, rdd msg.RDDID, reads []*graph.Shuffle) *stage {
		s.id = msg.StageID(len(d.stages))
		s.desc.ID.Stage = s.id
		s.desc.RDD = rdd
		s.desc.Seed = mix(d.cfg.Seed, uint64(j.ID), ordinal)
		ordinal++
		for _, r := range reads {
			s.parents = append(s.parents, d.byShuffle[r.ID])
			s.desc.Reads = append(s.desc.Reads, r.Desc)
		}
		s.have = newBitset(s.missing)
		d.stages = append(d.stages, s)
		return s
	}

	// Depth first, without recursion: lineages may be very deep. A frame is a
	// shuffle whose stage is to be made after those that it reads.
	type frame struct {
		shuffle *graph.Shuffle
		reads   []*graph.Shuffle
		next    int
	}
	root := frame{reads: d.graph.Reads(j.RDD)}
	frames := []frame{root}
	for {
		f := &frames[len(frames)-1]
		if f.next < len(f.reads) {
			r := f.reads[f.next]
			f.next++
			if d.byShuffle[r.ID] == nil {
				frames = append(frames, frame{shuffle: r, reads: d.graph.Reads(r.Parent.ID)})
			}
			continue
		}
		if f.shuffle == nil {
			break
		}
		p := f.shuffle.Parent
		d.byShuffle[f.shuffle.ID] = add(&stage{
			desc: msg.Stage{
				Kind: abi.TaskShuffle, Target: f.shuffle.Desc.ID,
				Name: p.Name, CallSite: p.CallSite, Shuffle: &f.shuffle.Desc,
			},
			shuffle: f.shuffle,
			outputs: make([]msg.MapOutput, p.Partitions),
			missing: p.Partitions,
		}, p.ID, f.reads)
		frames = frames[:len(frames)-1]
	}
	return add(&stage{
		desc: msg.Stage{
			Kind: abi.TaskResult, Target: j.Action, Name: j.Name, CallSite: j.CallSite, Sink: j.Sink,
		},
		job:     j,
		missing: j.count,
	}, j.RDD, root.reads)
}

// need notes that a job needs a stage, and those of the stages before it whose
// output is not there.
func (d *Scheduler) need(s *stage, j *job) {
	stack := []*stage{s}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i, found := slices.BinarySearchFunc(s.jobs, j.ID, func(j *job, id msg.JobID) int { return cmp.Compare(j.ID, id) })
		if found {
			continue
		}
		s.jobs = slices.Insert(s.jobs, i, j)
		j.stages = append(j.stages, s)
		for _, p := range s.parents {
			if p.missing > 0 {
				stack = append(stack, p)
			}
		}
	}
}

// ensure gets an idle stage to run, after those that it reads from, if it is
// needed and lacks something.
func (d *Scheduler) ensure(s *stage) {
	stack := []*stage{s}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if s.state != idle || s.missing == 0 || len(s.jobs) == 0 {
			continue
		}
		for _, p := range slices.Backward(s.parents) {
			if p.missing > 0 {
				s.awaited++
				p.waiters = append(p.waiters, s)
				for _, j := range s.jobs {
					d.need(p, j)
				}
				stack = append(stack, p)
			}
		}
		if s.awaited > 0 {
			s.state = waiting
		} else {
			d.submit(s)
		}
	}
}

// stopWaiting makes a waiting stage idle.
func (d *Scheduler) stopWaiting(s *stage) {
	for _, p := range s.parents {
		p.waiters = slices.DeleteFunc(p.waiters, func(w *stage) bool { return w == s })
	}
	s.state, s.awaited = idle, 0
}

// submit starts the next attempt of a stage.
func (d *Scheduler) submit(s *stage) {
	first := s.jobs[0]
	if s.attempts == 0 {
		s.desc.Image = first.Image
		if s.shuffle != nil {
			d.images[first.Image]++
		}
	}
	partitions := make([]int, 0, s.missing)
	s.pending = newBitset(64 * len(s.have))
	for i := range 64 * len(s.have) {
		if len(partitions) == s.missing {
			break
		}
		if !s.have.has(i) {
			partitions = append(partitions, s.partition(i))
			s.pending.add(i)
		}
	}
	s.pendingCount = s.missing
	s.state = running
	s.submittedFor = first.ID
	s.desc.ID.Attempt = s.attempts
	s.desc.Job = first.ID
	s.attempts++
	d.out.Submit = append(d.out.Submit, TaskSet{Stage: s.desc, Partitions: partitions, Priority: first.ID})
	d.out.Events = append(d.out.Events, event.StageSubmitted{
		Stage: s.current(), Job: first.ID, Kind: s.desc.Kind, Name: s.desc.Name, CallSite: s.desc.CallSite,
		Tasks: len(partitions),
	})
}

// mix makes a seed of three numbers, each of which changes about half its bits.
func mix(seed, job, ordinal uint64) uint64 {
	h := seed
	for _, v := range [...]uint64{job, ordinal} {
		// The finaliser of SplitMix64.
		h += 0x9e3779b97f4a7c15 * (v + 1)
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
