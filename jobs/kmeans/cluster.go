package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/quern-project/quern/sdk/quern"
)

// cluster is what is known of the points nearest to a center.
type cluster struct {
	Points int64
	Sum    point   // of the points
	Cost   float64 // sum of their squared distances to the center
}

// settle moves centers until they stay, or for a number of rounds. It returns
// them with their clusters.
func settle(points quern.RDD[point], centers []point, rounds int) ([]point, []cluster, error) {
	for {
		found, err := gather(points, centers)
		if err != nil || rounds == 0 {
			return centers, found, err
		}
		rounds--
		moved := make([]point, len(centers))
		for i, c := range found {
			moved[i] = c.mean(centers[i])
		}
		if slices.EqualFunc(moved, centers, slices.Equal) {
			return centers, found, nil
		}
		centers = moved
	}
}

// gather makes the cluster of each center.
func gather(points quern.RDD[point], centers []point) ([]cluster, error) {
	none := make([]cluster, len(centers))
	for i, c := range centers {
		none[i].Sum = make(point, len(c))
	}
	add := func(clusters []cluster, p point) []cluster {
		i, squared := nearest(centers, p)
		clusters[i].add(cluster{1, p, squared})
		return clusters
	}
	merge := func(a, b []cluster) []cluster {
		for i := range a {
			a[i].add(b[i])
		}
		return a
	}
	return points.Aggregate(none, add, merge)
}

func (c *cluster) add(d cluster) {
	c.Points += d.Points
	c.Cost += d.Cost
	for i, x := range d.Sum {
		c.Sum[i] += x
	}
}

// mean is where the center moves; without points it stays where it was.
func (c cluster) mean(was point) point {
	if c.Points == 0 {
		return was
	}
	mean := make(point, len(c.Sum))
	for i, sum := range c.Sum {
		mean[i] = sum / float64(c.Points)
	}
	return mean
}

func cost(clusters []cluster) float64 {
	sum := 0.0
	for _, c := range clusters {
		sum += c.Cost
	}
	return sum
}

// nearest returns the number of the center nearest to a point, the first one of
// several, and its squared distance.
func nearest(centers []point, p point) (center int, squared float64) {
	squared = math.Inf(1)
	for i, c := range centers {
		if len(c) != len(p) {
			panic(fmt.Sprintf("point %v has %d coordinates, point %v has %d", p, len(p), c, len(c)))
		}
		sum := 0.0
		for j, x := range p {
			sum += (x - c[j]) * (x - c[j])
		}
		if sum < squared {
			center, squared = i, sum
		}
	}
	return center, squared
}
