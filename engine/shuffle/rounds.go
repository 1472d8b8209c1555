package shuffle

import (
	"os"
)

// rounds merges runs into fewer, longer runs, until what is left can be merged
// at once. Only neighbours are merged, so that equal keys keep their order.
type rounds struct {
	what    string // for errors
	config  Config
	writer  *blockWriter
	decomp  *decompressor
	sorted  bool
	create  func() (*os.File, error) // makes a scratch file
	files   []*scratch               // all that were made
	written int64                    // bytes, to all files
}

// load is what it takes to have runs open at once.
type load struct {
	runs  int
	files int   // open files that are theirs alone
	cost  int64 // memory in bytes
}

func loadOf(runs []*run) (l load) {
	for _, r := range runs {
		l.add(r, 1)
	}
	return l
}

// add counts a run n times, which may be -1.
func (l *load) add(r *run, n int) {
	l.runs += n
	l.cost += int64(n) * r.cost()
	if r.out != nil && !r.whole() {
		l.files += n
	}
}

// fit says whether a load can be carried at once, with budget bytes of memory.
// Two runs are the least that a round could merge too.
func (r *rounds) fit(l load, budget int64) bool {
	return l.runs <= 2 || l.files <= r.config.files() && l.cost <= budget
}

// narrow answers runs that fit.
func (r *rounds) narrow(runs []*run, budget int64) ([]*run, error) {
	for !r.fit(loadOf(runs), budget) {
		var err error
		if runs, err = r.round(runs, budget); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// round merges groups of neighbours, from the first on, until the rest fits or
// all have been merged.
func (r *rounds) round(runs []*run, budget int64) ([]*run, error) {
	file, err := r.newFile()
	if err != nil {
		return nil, err
	}
	total := loadOf(runs)
	var done []*run
	for len(runs) > 1 && !r.fit(total, budget) {
		group := loadOf(runs[:2])
		for group.runs < len(runs) {
			next := group
			if next.add(runs[group.runs], 1); !r.fit(next, budget) {
				break
			}
			group = next
		}
		merged, n, err := r.merge(runs[:group.runs], file)
		if err != nil {
			return nil, err
		}
		for _, used := range runs[:n] {
			total.add(used, -1)
			used.release()
		}
		total.add(merged, 1)
		done = append(done, merged)
		runs = runs[n:]
	}
	return append(done, runs...), nil
}

// merge makes one run of several, or of as many as there is memory for, but no
// less than two. It answers how many.
func (r *rounds) merge(runs []*run, file *scratch) (*run, int, error) {
	open, err := openRuns(r.config.Memory, r.decomp, runs)
	defer func() { closeRuns(open) }()
	if err != nil && len(open) < 2 {
		return nil, 0, err
	}
	merged := file.newRun()
	r.writer.open(file.f, file.size)
	if err := mergeRuns(r.writer, open, r.sorted, merged.extend); err != nil {
		return nil, 0, err
	}
	if err := r.writer.flush(); err != nil {
		return nil, 0, err
	}
	file.add(merged)
	r.written += merged.length
	return merged, len(open), nil
}

func (r *rounds) newFile() (*scratch, error) {
	f, err := r.create()
	if err != nil {
		return nil, diskError(r.what, err)
	}
	s := &scratch{what: r.what, f: f}
	r.files = append(r.files, s)
	return s, nil
}

// close removes the files that are left.
func (r *rounds) close() {
	for _, f := range r.files {
		f.remove()
	}
	r.files = nil
}

// scratch is a file of runs. It is removed as soon as no run in it is needed.
type scratch struct {
	what string // whose, for errors
	f    *os.File
	size int64
	runs int // that are needed
}

// newRun is an empty run at the end of the file.
func (s *scratch) newRun() *run {
	return &run{segment: segment{offset: s.size}, file: s}
}

// add makes a run that was written to the end of the file part of it.
func (s *scratch) add(r *run) {
	s.size += r.length
	s.runs++
}

// remove deletes the file. It may be called twice.
func (s *scratch) remove() {
	if s.f != nil {
		s.f.Close()
		os.Remove(s.f.Name())
		s.f = nil
	}
}

// extend adds what was written of one partition.
func (r *run) extend(_ uint32, s segment) error {
	r.length += s.length
	r.records += s.records
	r.maxRaw = max(r.maxRaw, s.maxRaw)
	return nil
}

// release says that the run is no longer needed.
func (r *run) release() {
	if r.file == nil {
		return
	}
	if r.file.runs--; r.file.runs == 0 {
		r.file.remove()
	}
}
