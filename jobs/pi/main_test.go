package main

import (
	"math"
	"testing"

	"github.com/quern-project/quern/sdk/quern"
)

func TestTheEstimateIsCloseToPi(t *testing.T) {
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	const partitions = 5
	got, err := estimate(ctx, partitions)
	if err != nil {
		t.Fatal(err)
	}
	// A dart hits with the probability π/4. Six deviations are beyond chance.
	p := math.Pi / 4
	deviation := 4 * math.Sqrt(p*(1-p)/(partitions*dartsPerPartition))
	if math.Abs(got-math.Pi) > 6*deviation {
		t.Errorf("π is about %v, want %v within %v", got, math.Pi, 6*deviation)
	}
}

func TestAMistakenNumberOfPartitionsIsAnError(t *testing.T) {
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := estimate(ctx, -1); err == nil {
		t.Errorf("π is about %v with -1 partitions, want an error", got)
	}
}
