package main

import (
	"reflect"
	"testing"

	"github.com/quern-project/quern/sdk/quern"
)

// The test runs the job in this process, without a sandbox: a debugger and
// coverage work as in any Go test.
func TestTopWords(t *testing.T) {
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	got, err := topWords(ctx, []string{"input.txt"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []quern.Pair[string, int64]{{Key: "the", Value: 11}, {Key: "stone", Value: 5}, {Key: "and", Value: 4}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the top words are %v, want %v", got, want)
	}
}
