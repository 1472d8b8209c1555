//go:build !wasip1

package quern

import (
	"fmt"

	"github.com/quern-project/quern/sdk/abi"
)

// nativeJob is an action whose results are being pulled.
type nativeJob struct {
	e          *evaluator
	id         int // ordinal
	desc       abi.JobDesc
	inputs     []*nativeShuffle // of its last stage
	stage      *nativeStage     // the last one; nil before its first task
	stages     int              // new ones so far
	partitions []int            // not run yet
	results    [][]byte         // of partitions that were run, not pulled yet
	sink       *nativeSink      // nil without
	err        error            // why it failed
}

// nativeStage is a set of tasks without a shuffle among them. As in the engine,
// a shuffle's stage keeps its number and seed when a later job runs it again.
type nativeStage struct {
	id     int // ordinal
	kind   abi.TaskKind
	target uint32 // the action or the shuffle
	where  string // name and call site
	seed   uint64
}

// newJob checks an action and makes it ready; nothing runs yet.
func (e *evaluator) newJob(d *abi.JobDesc) (*nativeJob, error) {
	r := e.rdds[d.RDD]
	if r == nil {
		return nil, badArgument("there is no RDD %d", d.RDD)
	}
	j := &nativeJob{e: e, desc: *d, inputs: r.inputs(), partitions: append([]int(nil), d.Partitions...)}
	wanted := map[int]bool{}
	for _, p := range d.Partitions {
		if p < 0 || p >= r.partitions || wanted[p] {
			return nil, badArgument("partition %d of %d is wanted twice or does not exist", p, r.partitions)
		}
		wanted[p] = true
	}
	if len(d.Partitions) == 0 {
		for p := range r.partitions {
			j.partitions = append(j.partitions, p)
		}
	}
	if d.Sink != nil {
		sink, err := newNativeSink(d.Sink)
		if err != nil {
			return nil, err
		}
		j.sink = sink
	}
	j.id = e.jobCount
	e.jobCount++
	return j, nil
}

// nextResults fills buf with whole batches and answers their length, 0 at the
// end of the job, or the length of the next batch if buf cannot hold it. It
// runs as many partitions as that takes.
func (j *nativeJob) nextResults(buf []byte) (int, error) {
	for len(j.results) == 0 && j.err == nil && (len(j.partitions) > 0 || j.sink != nil) {
		if j.err = j.step(); j.err != nil {
			j.close()
		}
	}
	if j.err != nil {
		return 0, j.err
	}
	n, rest := fillBatches(buf, j.results)
	j.results = rest
	return n, nil
}

// step runs one more partition or, after the last, commits the output.
func (j *nativeJob) step() error {
	if len(j.partitions) == 0 {
		err := j.sink.commit()
		j.sink = nil
		if err != nil {
			return fmt.Errorf("%s failed: %w", j, err)
		}
		return nil
	}
	// For each partition, because a new context may have dropped a shuffle.
	if err := j.compute(j.inputs); err != nil {
		return err
	}
	if j.stage == nil {
		j.stage = j.newStage(abi.TaskResult, j.desc.Action, where(j.desc.Name, j.desc.CallSite))
	}
	t, err := j.runTask(j.stage, j.partitions[0])
	if err != nil {
		return err
	}
	j.partitions = j.partitions[1:]
	j.results = t.results
	return nil
}

// close drops what has not been pulled and removes output that has not been
// committed.
func (j *nativeJob) close() {
	j.partitions, j.results = nil, nil
	if j.sink != nil {
		j.sink.abort()
		j.sink = nil
	}
}

// compute runs the map stages of shuffles, except those that are there from
// before. First come the stages that these need in turn.
func (j *nativeJob) compute(shuffles []*nativeShuffle) error {
	for _, s := range shuffles {
		if s.complete {
			continue
		}
		if err := j.compute(s.parent.inputs()); err != nil {
			return err
		}
		if s.stage == nil {
			s.stage = j.newStage(abi.TaskShuffle, s.desc.ID, s.parent.where())
		}
		s.begin()
		for p := range s.parent.partitions {
			if _, err := j.runTask(s.stage, p); err != nil {
				s.drop()
				return err
			}
		}
		s.complete = true
	}
	return nil
}

func (j *nativeJob) newStage(kind abi.TaskKind, target uint32, where string) *nativeStage {
	s := &nativeStage{
		id: j.e.stageCount, kind: kind, target: target, where: where,
		seed: mixSeed(j.e.seed, uint64(j.id), uint64(j.stages)),
	}
	j.stages++
	j.e.stageCount++
	return s
}

// String names the job in errors, in the engine's words.
func (j *nativeJob) String() string {
	return fmt.Sprintf("job %d%s", j.id, where(j.desc.Name, j.desc.CallSite))
}

// mixSeed makes a seed of another one and more numbers, so that neighbours share
// nothing: rounds of SplitMix64. The engine makes the same ones.
func mixSeed(seed uint64, more ...uint64) uint64 {
	for _, n := range more {
		seed += 0x9e3779b97f4a7c15 * (n + 1)
		seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		seed = (seed ^ seed>>27) * 0x94d049bb133111eb
		seed ^= seed >> 31
	}
	return seed
}
