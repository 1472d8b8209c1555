package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
)

// logOf is what the log listener writes of events, a line each.
func logOf(level slog.Level, maxFailures int, events ...event.Event) string {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	for _, l := range withLogListener(nil, log, maxFailures) {
		for _, e := range events {
			l.On(e)
		}
	}
	return out.String()
}

func events() []event.Event {
	stage := msg.StageAttempt{Stage: 3, Attempt: 1}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	used := msg.TaskMetrics{
		RunNanos: 1500000, PeakMemory: 77, InputRecords: 9, InputBytes: 3 << 20, ShuffleWritten: 2000, DiskSpilled: 1 << 20, OutputBytes: 5, ResultBytes: 6,
	}
	broken := &msg.Failure{Kind: msg.FailUser, Message: "it broke"}
	return []event.Event{
		event.ExecutorAdded{Executor: "x", Slots: 2},
		event.JobStarted{Time: start, Job: 1, Name: "count", CallSite: "main.go:7", Stages: []event.Stage{{}, {Skipped: true}, {}}},
		event.StageSubmitted{Stage: stage, Job: 1, Name: "map", CallSite: "main.go:6", Tasks: 2},
		event.TaskStarted{Stage: stage, Executor: "x"},
		event.TaskEnded{Stage: stage, Executor: "x", State: msg.StateFinished, Metrics: used},
		event.TaskEnded{Stage: stage, Executor: "x", Partition: 1, State: msg.StateFailed, Failure: broken},
		event.TaskEnded{Stage: stage, Executor: "x", Partition: 1, Attempt: 1, State: msg.StateFailed, Failure: broken},
		event.TaskEnded{Stage: stage, Executor: "x", Partition: 2, State: msg.StateKilled, Failure: &msg.Failure{Message: "not wanted"}},
		event.StageCompleted{Stage: stage, Job: 1, Error: "it broke"},
		event.JobEnded{Time: start.Add(2 * time.Second), Job: 1, Error: "it broke"},
		event.TaskEnded{Stage: stage, Executor: "x", Partition: 3, State: msg.StateKilled, Failure: &msg.Failure{Message: "too late"}},
		event.JobStarted{Time: start, Job: 2},
		event.JobEnded{Time: start.Add(time.Second), Job: 2},
	}
}

func TestLogListenerLogsDetails(t *testing.T) {
	want := `level=DEBUG msg="job started" job=1 action=count at=main.go:7 stages=2 skipped=1
level=DEBUG msg="stage started" stage=3.1 job=1 name=map at=main.go:6 tasks=2
level=DEBUG msg="task finished" stage=3.1 partition=0 attempt=1 executor=x took=1.5ms memory=77B
level=WARN msg="task failed and is tried again" stage=3.1 partition=1 attempt=1 executor=x cause="it broke"
level=DEBUG msg="task failed" stage=3.1 partition=1 attempt=2 executor=x cause="it broke"
level=DEBUG msg="task killed" stage=3.1 partition=2 attempt=1 executor=x cause="not wanted"
level=DEBUG msg="stage failed" stage=3.1 job=1 cause="it broke"
level=DEBUG msg="job failed" job=1 action=count at=main.go:7 took=2s stages=1 tasks=4 failures=2 records=9 read=3.0MiB shuffled=2.0KiB spilled=1.0MiB saved=5B results=6B cause="it broke"
level=DEBUG msg="task killed" stage=3.1 partition=3 attempt=1 executor=x cause="too late"
level=DEBUG msg="job started" job=2 action="" at="" stages=0 skipped=0
level=DEBUG msg="job finished" job=2 action="" at="" took=1s stages=0 tasks=0 failures=0
`
	if diff := cmp.Diff(want, logOf(slog.LevelDebug, 2, events()...)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestLogListenerWarnsOfRetriedFailures(t *testing.T) {
	got := logOf(slog.LevelInfo, 2, events()...)
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "tried again") {
		t.Errorf("the log is %q, want one warning", got)
	}
	if got := logOf(slog.LevelInfo, 1, events()...); got != "" {
		t.Errorf("where nothing is tried again, the log is %q, want none", got)
	}
}
