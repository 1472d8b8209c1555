package executor

import (
	"fmt"

	"github.com/quern-project/quern/engine/msg"
)

// Faults makes attempts fail on purpose, so that tests see what retries do. It
// is decided by the seed, the stage, the partition and the attempt alone.
type Faults struct {
	// Rate is the share of attempts that fail, 0 to 1.
	Rate float64
	// MaxFailures is how many attempts a task has; the last is spared.
	MaxFailures int
	Seed        uint64
}

// point is a moment in a task's life at which it can be made to fail.
type point uint8

const (
	never point = iota
	atStart
	atWrite // the first batch that is written
	atClose // when an output port is about to be complete
	points
)

// fault is what one attempt was dealt.
type fault struct{ when point }

// InjectedError is a failure that was asked for.
type InjectedError struct{ At string }

func (e *InjectedError) Error() string { return "failure injected " + e.At + " (quern.test.failTasks)" }

func (f Faults) draw(stage *msg.Stage, t *msg.Task) fault {
	if f.Rate <= 0 || t.Attempt+1 >= f.MaxFailures {
		return fault{}
	}
	x := mix(f.Seed ^ mix(uint64(stage.ID.Stage)<<40|uint64(t.Partition)<<8|uint64(t.Attempt)))
	if float64(x>>11)/(1<<53) >= f.Rate {
		return fault{}
	}
	return fault{when: atStart + point(mix(x)%uint64(points-atStart))}
}

// at answers the failure if this is its moment.
func (f fault) at(p point) error {
	if f.when != p || p == never {
		return nil
	}
	return &InjectedError{At: [...]string{atStart: "at the start of the task", atWrite: "at a write", atClose: "at the end of the output"}[p]}
}

// faulty is an output port that fails at its moment.
type faulty struct {
	port
	fault fault
}

func (p *faulty) write(b []byte) error {
	if err := p.fault.at(atWrite); err != nil {
		return err
	}
	return p.port.write(b)
}

func (p *faulty) close() error {
	if err := p.fault.at(atClose); err != nil {
		return fmt.Errorf("closing the output: %w", err)
	}
	return p.port.close()
}
