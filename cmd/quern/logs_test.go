package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogLinesAreForPeople(t *testing.T) {
	var out bytes.Buffer
	log := newLog(&out, false)
	log.Debug("not shown")
	log.Info("printed by a task", "task", "0.0")
	log.Info("built", "took", 402571596*time.Nanosecond)
	log.Warn("task failed", "stage", "1.0", "partition", 3, "cause", "no space left")
	log.With("job", 7).WithGroup("task").Error("gone", slog.Group("where", "host", "a"), "empty", "")
	want := "INFO printed by a task task=0.0\n" +
		"INFO built took=403ms\n" +
		"WARN task failed stage=1.0 partition=3 cause=\"no space left\"\n" +
		"ERROR gone job=7 task.where.host=a task.empty=\"\"\n"
	if out.String() != want {
		t.Errorf("log is\n%s, want\n%s", out.String(), want)
	}
}

func TestLogShowsSeveralLinesAsSuch(t *testing.T) {
	var out bytes.Buffer
	newLog(&out, false).Error("panic", "stack", "main.main\nmain.go:3\n")
	if want := "ERROR panic stack=\n\tmain.main\n\tmain.go:3\n"; out.String() != want {
		t.Errorf("log is %q, want %q", out.String(), want)
	}
}

func TestVerboseLogHasTimesAndEverything(t *testing.T) {
	var out bytes.Buffer
	newLog(&out, true).Debug("stage submitted", "stage", 2)
	stamp, rest, _ := strings.Cut(out.String(), " ")
	if len(stamp) != len("15:04:05.000") || rest != "DEBUG stage submitted stage=2\n" {
		t.Errorf("log is %q", out.String())
	}
}
