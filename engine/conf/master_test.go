package conf

import (
	"runtime"
	"strings"
	"testing"
)

func TestLocalMasters(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for text, want := range map[string]Master{
		"local":          {Slots: 1},
		"local[1]":       {Slots: 1},
		"local[16]":      {Slots: 16},
		"local[*]":       {Slots: cores},
		"local[2,4]":     {Slots: 2, MaxFailures: 4},
		"local[ 2 , 4 ]": {Slots: 2, MaxFailures: 4},
		"local[*,1]":     {Slots: cores, MaxFailures: 1},
	} {
		want.text = text
		if got, err := ParseMaster(text); err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                 "no such master",
		"locals":           "no such master",
		"Local":            "no such master",
		"local[":           "no closing bracket",
		"local[2":          "no closing bracket",
		"local[]":          `N, the number of slots, is "", not a whole number`,
		"local[two]":       `N, the number of slots, is "two", not a whole number`,
		"local[0]":         "N, the number of slots, is 0, not from 1 to 4096",
		"local[-1]":        "N, the number of slots, is -1, not from 1 to 4096",
		"local[99999]":     "N, the number of slots, is 99999, not from 1 to 4096",
		"local[2,0]":       "F, the number of attempts, is 0, not from 1 to 4096",
		"local[2,]":        `F, the number of attempts, is "", not a whole number`,
		"local[2,*]":       `F, the number of attempts, is "*", not a whole number`,
		"local[2,3,4]":     `F, the number of attempts, is "3,4", not a whole number`,
		"quern://host:707": "this version has local masters only, no quern:// one",
	} {
		if _, err := ParseMaster(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestTaskFailuresAllowedOnOneMachine(t *testing.T) {
	for _, c := range []struct {
		master, maxFailures string
		want                int
	}{
		{"local[*]", "", 1},
		{"local[2,4]", "", 4},
		{"local[2,4]", "7", 4},
		{"local[2]", "7", 7},
		{"local[2]", "4", 4}, // the default's value, but asked for
	} {
		settings := []Setting{MasterURL.Set(c.master, FromFlag, "--master")}
		if c.maxFailures != "" {
			settings = append(settings, TaskMaxFailures.Set(c.maxFailures, FromFile, ""))
		}
		conf, err := New().With(settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := MaxTaskFailures(conf); got != c.want {
			t.Errorf("master %s, maxFailures %q: %d, want %d", c.master, c.maxFailures, got, c.want)
		}
	}
}
