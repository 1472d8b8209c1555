// Command kmeans finds the centers of clusters of points.
//
//	quern run jobs/kmeans [-k 4] [-iterations 20] POINTS
//	quern run jobs/kmeans -gen 1000000
//
// POINTS are text files with a point's coordinates on each line, with white
// space or commas between them. With -gen the job makes so many points in the
// plane, around four centers, always the same ones.
//
// The first centers are drawn as k-means++ does: each is a point, and more likely
// one far away from those before. Then, in rounds, each point joins the center
// nearest to it, and each center moves to the mean of its points, until none
// moves. The output has a line for each center, with the number of its points,
// and the cost, which is the sum of all squared distances to the nearest center.
//
// It shows a driver that loops: each round's closures capture the centers that
// the last round's action has returned.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

// options are the command line.
type options struct {
	k          int
	iterations int
	generate   int64  // number of points to make
	path       string // of points, if none are made
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("kmeans: ")
	var o options
	flag.IntVar(&o.k, "k", 4, "`number` of centers")
	flag.IntVar(&o.iterations, "iterations", 20, "`number` of rounds at most")
	flag.Int64Var(&o.generate, "gen", 0, "cluster this `number` of random points")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: kmeans [FLAGS] POINTS\n       kmeans [FLAGS] -gen NUMBER")
		flag.PrintDefaults()
	}
	flag.Parse()
	if (o.generate == 0) != (flag.NArg() == 1) || flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.path = flag.Arg(0)
	ctx, err := quern.NewContext(quern.AppName("kmeans"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx *quern.Context, o options, out io.Writer) error {
	if o.k < 1 || o.iterations < 0 || o.generate < 0 {
		return errors.New("-k takes numbers from 1 up, -iterations and -gen from 0 up")
	}
	var points quern.RDD[point]
	if o.path != "" {
		points = ctx.TextFile(o.path).Filter(hasPoint).Map(parse)
	} else {
		points = ctx.Range(0, o.generate, 1).Map(randomPoint)
	}
	centers, err := firstCenters(points, o.k)
	if err != nil {
		return err
	}
	centers, found, err := settle(points, centers, o.iterations)
	if err != nil {
		return err
	}
	for i, c := range centers {
		for _, x := range c {
			fmt.Fprintf(out, "%.4f ", x)
		}
		fmt.Fprintf(out, "(%d points)\n", found[i].Points)
	}
	fmt.Fprintf(out, "cost %.4f\n", cost(found))
	return nil
}

// point is a place, or the sum of some.
type point []float64

// candidate is a point that may become a center, the sooner the smaller its
// delay.
type candidate struct {
	delay float64
	point point
}

// firstCenters draws up to k centers, fewer if there are fewer different points.
func firstCenters(points quern.RDD[point], k int) ([]point, error) {
	var centers []point
	for len(centers) < k {
		// Of all points, each with an exponentially distributed delay, the chance
		// to be first is in proportion to the rate, here the squared distance.
		// The delay comes from the point itself: it does not depend on partitions.
		first, err := points.
			Map(func(p point) candidate {
				rate := 1.0
				if len(centers) > 0 {
					_, rate = nearest(centers, p)
				}
				return candidate{-math.Log(uniform(p, uint64(len(centers)))) / rate, p}
			}).
			Reduce(func(a, b candidate) candidate {
				if b.delay < a.delay {
					return b
				}
				return a
			})
		switch {
		case errors.Is(err, quern.ErrEmpty):
			return nil, errors.New("there are no points")
		case err != nil:
			return nil, err
		case math.IsInf(first.delay, 1):
			return centers, nil // all points are centers
		}
		centers = append(centers, first.point)
	}
	return centers, nil
}

// uniform is a random number between 0 and 1, neither included, made of a point
// and a round.
func uniform(p point, round uint64) float64 {
	h := mix(round)
	for _, x := range p {
		h = mix(h ^ math.Float64bits(x))
	}
	return (float64(h>>12) + 0.5) / (1 << 52)
}

// mix is SplitMix64: it makes a random number of each number.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hasPoint says that a line is not blank.
func hasPoint(line string) bool { return strings.TrimSpace(line) != "" }

// parse reads a line. A task that meets a bad one fails, and the job with it,
// with this text.
func parse(line string) point {
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	if len(fields) == 0 {
		panic(fmt.Sprintf("line %q has no coordinates", line))
	}
	p := make(point, len(fields))
	for i, field := range fields {
		x, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			panic(fmt.Sprintf("line %q: %q is not a coordinate", line, field))
		}
		p[i] = x
	}
	return p
}

// randomPoint makes the point of a number.
func randomPoint(number int64) point {
	random := rand.New(rand.NewPCG(uint64(number), 0))
	x, y := 10*float64(number&1), 10*float64(number>>1&1)
	return point{x + random.NormFloat64(), y + random.NormFloat64()}
}
