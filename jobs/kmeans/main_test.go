package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quern-project/quern/sdk/quern"
)

func newContext(t testing.TB) *quern.Context {
	t.Helper()
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// lloyd is the algorithm on a matrix, a coordinate after the other, from given
// centers on. It returns the centers and, for each point, the number of its own.
func lloyd(points, start [][]float64, rounds int) (centers [][]float64, of []int) {
	for _, c := range start {
		centers = append(centers, slices.Clone(c))
	}
	of = make([]int, len(points))
	assign := func() {
		for i, p := range points {
			distances := make([]float64, len(centers))
			for j, c := range centers {
				for d := range p {
					distances[j] += math.Pow(p[d]-c[d], 2)
				}
			}
			of[i] = slices.Index(distances, slices.Min(distances))
		}
	}
	assign()
	for range rounds {
		for j := range centers {
			for d := range centers[j] {
				var own []float64
				for i, p := range points {
					if of[i] == j {
						own = append(own, p[d])
					}
				}
				if len(own) > 0 {
					sum := 0.0
					for _, x := range own {
						sum += x
					}
					centers[j][d] = sum / float64(len(own))
				}
			}
		}
		assign()
	}
	return centers, of
}

var nearly = cmpopts.EquateApprox(1e-9, 1e-9)

func TestCentersSettleWhereLloydsAlgorithmPutsThem(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dimensions := rapid.IntRange(1, 3).Draw(r, "dimensions")
		// Small whole numbers make ties and equal points, and exact sums.
		place := rapid.Custom(func(r *rapid.T) point {
			p := make(point, dimensions)
			for i := range p {
				p[i] = float64(rapid.IntRange(-4, 4).Draw(r, "coordinate"))
			}
			return p
		})
		points := rapid.SliceOfN(place, 0, 20).Draw(r, "points")
		start := rapid.SliceOfN(place, 1, 4).Draw(r, "centers")
		rounds := rapid.IntRange(0, 5).Draw(r, "rounds")
		parts := rapid.IntRange(1, 6).Draw(r, "parts")

		plain := func(points []point) [][]float64 {
			var all [][]float64
			for _, p := range points {
				all = append(all, p)
			}
			return all
		}
		centers, of := lloyd(plain(points), plain(start), rounds)
		want := make([]cluster, len(centers))
		for i, p := range points {
			c := &want[of[i]]
			c.Points++
			for d := range p {
				c.Cost += math.Pow(p[d]-centers[of[i]][d], 2)
			}
		}
		got, found, err := settle(newContext(t).Parallelize(points, parts), start, rounds)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(centers, plain(got), nearly); diff != "" {
			r.Errorf("centers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, found, nearly, cmpopts.IgnoreFields(cluster{}, "Sum")); diff != "" {
			r.Errorf("clusters (-want +got):\n%s", diff)
		}
	})
}

func TestFirstCentersAreDifferentPointsWhateverThePartitions(t *testing.T) {
	points := []point{{1}, {2}, {2}, {3}, {3}, {3}, {7}}
	for k := 1; k <= 6; k++ {
		var want []point
		for parts := 1; parts <= 9; parts++ {
			got, err := firstCenters(newContext(t).Parallelize(points, parts), k)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("k=%d: %d partitions have other centers than 1 (-1 +%[2]d):\n%s", k, parts, diff)
			}
		}
		different := map[float64]bool{}
		for _, c := range want {
			different[c[0]] = true
			if !slices.ContainsFunc(points, func(p point) bool { return slices.Equal(p, c) }) {
				t.Errorf("k=%d: the center %v is no point", k, c)
			}
		}
		if len(want) != min(k, 4) || len(different) != len(want) {
			t.Errorf("k=%d: the first centers are %v, want %d different ones", k, want, min(k, 4))
		}
	}
}

// Of three points in a row, when the first center is at one end, the other end
// is four times as likely as the middle.
func TestFarPointsAreLikelierCenters(t *testing.T) {
	ctx := newContext(t)
	middle, end := 0, 0
	for i := range 1500 {
		at := float64(i)
		centers, err := firstCenters(ctx.Parallelize([]point{{at, 0}, {at, 1}, {at, 2}}, 1), 2)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case centers[0][1] == 1:
		case centers[1][1] == 1:
			middle++
		default:
			end++
		}
	}
	// About 1000 cases, of which 800 with a standard deviation of 13.
	if share := float64(end) / float64(middle+end); middle+end < 900 || share < 0.74 || share > 0.86 {
		t.Errorf("the far end was the second center in %d of %d cases, want 80%%", end, middle+end)
	}
}

func printed(t testing.TB, o options) string {
	t.Helper()
	var out strings.Builder
	if err := run(newContext(t), o, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// file makes a text file.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "points.txt")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRandomPointsHaveFourClusters(t *testing.T) {
	lines := strings.Split(printed(t, options{k: 4, iterations: 20, generate: 2000}), "\n")
	slices.Sort(lines)
	near := map[string]bool{}
	for _, line := range lines {
		var x, y float64
		var points int
		if _, err := fmt.Sscanf(line, "%f %f (%d points)", &x, &y, &points); err == nil {
			near[fmt.Sprintf("%d %d %d", int(math.Round(x)), int(math.Round(y)), points)] = true
		}
	}
	want := map[string]bool{"0 0 500": true, "0 10 500": true, "10 0 500": true, "10 10 500": true}
	if diff := cmp.Diff(want, near); diff != "" {
		t.Errorf("rounded centers of %q (-want +got):\n%s", lines, diff)
	}
}

func TestOutput(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one point", "3 4", "3.0000 4.0000 (1 points)\ncost 0.0000\n"},
		{"equal points", "1,2\n1,2\n1 , 2\n\n", "1.0000 2.0000 (3 points)\ncost 0.0000\n"},
		{"a single coordinate", "-1.5\r\n", "-1.5000 (1 points)\ncost 0.0000\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := printed(t, options{k: 3, iterations: 5, path: file(t, c.text)}); got != c.want {
				t.Errorf("the output is %q, want %q", got, c.want)
			}
		})
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct {
		o    options
		want string
	}{
		{options{k: 0, generate: 1}, "-k takes numbers from 1 up"},
		{options{k: 1, iterations: -1, generate: 1}, "-iterations"},
		{options{k: 1, generate: -1}, "-gen"},
		{options{k: 2, path: file(t, "\n \n")}, "there are no points"},
		{options{k: 2, path: file(t, "1 2\n1 2 3\n")}, "has 3 coordinates"},
		{options{k: 2, path: file(t, "1 x\n")}, `line "1 x": "x" is not a coordinate`},
		{options{k: 2, path: file(t, "1 NaN\n")}, `"NaN" is not a coordinate`},
		{options{k: 2, path: file(t, "1e999\n")}, `"1e999" is not a coordinate`},
		{options{k: 2, path: file(t, ",\n")}, `line "," has no coordinates`},
	} {
		err := run(newContext(t), c.o, &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: the error is %v, want it to say %q", c.o, err, c.want)
		}
	}
}
