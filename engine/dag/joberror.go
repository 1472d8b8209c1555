package dag

import (
	"fmt"
	"strings"

	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/internal/units"
)

// JobError is why a job has no result.
type JobError struct {
	Job      msg.JobID
	Name     string
	CallSite string
	// Cancelled says that the job did not fail but was cancelled.
	Cancelled bool
	// Cause says what went wrong, or why the job was cancelled.
	Cause string
	// Failure is the last failure of the task that ended the job, with the
	// guest's stack if there is one. It is nil if no task did.
	Failure *msg.Failure
}

// Error gives one line, such as
//
//	job 3 (count at main.go:12) failed: stage 4 (map at main.go:9) partition 7 failed 4 times; last: ...
func (e *JobError) Error() string {
	verb := "failed"
	if e.Cancelled {
		verb = "was cancelled"
	}
	return oneLine(fmt.Sprintf("job %d%s %s: %s", e.Job, where(e.Name, e.CallSite), verb, e.Cause))
}

// Unwrap gives the task's failure, for errors.As.
func (e *JobError) Unwrap() error {
	if e.Failure == nil {
		return nil
	}
	return e.Failure
}

// MissingOutputsError says that a shuffle cannot be read now, because some of
// its map outputs were lost or have not been computed.
type MissingOutputsError struct {
	Shuffle  msg.ShuffleID
	Name     string // of the map stage
	CallSite string
	Missing  int // map outputs that are missing
	Total    int // map outputs of the shuffle
}

func (e *MissingOutputsError) Error() string {
	return fmt.Sprintf("shuffle %d%s: %d of %d map outputs are missing", e.Shuffle, where(e.Name, e.CallSite),
		e.Missing, e.Total)
}

// where gives " (map at main.go:9)" or as much of it as is known.
func where(name, callSite string) string {
	switch {
	case name == "" && callSite == "":
		return ""
	case name == "":
		return " (at " + callSite + ")"
	case callSite == "":
		return " (" + name + ")"
	}
	return " (" + name + " at " + callSite + ")"
}

// oneLine puts a text on one line.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
}

// tooLarge says that a job's results exceed the limit.
func tooLarge(size, limit int64) string {
	return fmt.Sprintf("its results are %s so far and %s are allowed: collect less, save it with SaveAsTextFile, "+
		"or raise quern.driver.maxResultSize", units.Bytes(size), units.Bytes(limit))
}
