// Command pi estimates π as SparkPi does: it throws darts at a square and counts
// those that land in the circle within it.
//
//	quern run jobs/pi [PARTITIONS]
//
// Each partition throws 100,000. They draw from math/rand's top-level functions,
// which Quern seeds for each task, so that partitions differ and a run with the
// same --seed gives the same estimate.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/quern-project/quern/sdk/quern"
)

const dartsPerPartition = 100_000

func main() {
	log.SetFlags(0)
	partitions := 8
	if len(os.Args) > 1 {
		var err error
		if partitions, err = strconv.Atoi(os.Args[1]); err != nil {
			log.Fatalf("pi: the number of partitions: %v", err)
		}
	}
	ctx, err := quern.NewContext(quern.AppName("pi"))
	if err != nil {
		log.Fatal(err)
	}
	pi, err := estimate(ctx, partitions)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Pi is roughly %.5f\n", pi)
}

func estimate(ctx *quern.Context, partitions int) (float64, error) {
	darts := int64(partitions) * dartsPerPartition
	hits, err := ctx.Range(0, darts, 1, partitions).
		Filter(func(int64) bool {
			x, y := 2*rand.Float64()-1, 2*rand.Float64()-1
			return x*x+y*y <= 1
		}).
		Count()
	return 4 * float64(hits) / float64(darts), err
}
