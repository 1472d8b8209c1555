package quern_test

import (
	"cmp"
	"fmt"
	"iter"
	"log"
	"slices"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

// The examples run natively, as a job's own tests would.
func exampleContext() *quern.Context {
	ctx, err := quern.NewContext(quern.AppName("example"))
	if err != nil {
		log.Fatal(err)
	}
	return ctx
}

func Example() {
	ctx, err := quern.NewContext(quern.AppName("word count"))
	if err != nil {
		log.Fatal(err)
	}
	counts := ctx.Parallelize([]string{"to be or", "not to be"}).
		FlatMap(strings.Fields).
		MapToPair(func(w string) (string, int64) { return w, 1 }).
		ReduceByKey(func(a, b int64) int64 { return a + b })
	top, err := counts.Top(2, func(a, b quern.Pair[string, int64]) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Key, a.Key))
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(top)
	// Output: [(be,2) (to,2)]
}

func ExamplePairRDD_Join() {
	ctx := exampleContext()
	names := quern.AsPairs(ctx.Parallelize([]quern.Pair[int, string]{{Key: 1, Value: "Ada"}, {Key: 2, Value: "Bo"}}))
	ages := quern.AsPairs(ctx.Parallelize([]quern.Pair[int, int]{{Key: 1, Value: 36}, {Key: 3, Value: 7}}))
	inner, err := names.Join(ages, func(name string, age int) string { return fmt.Sprint(name, " is ", age) }, 1).Collect()
	fmt.Println(inner, err)
	outer, err := names.LeftOuterJoin(ages, func(name string, age quern.Option[int]) string {
		return fmt.Sprint(name, " is ", age.GetOrElse(-1))
	}, 1).Collect()
	fmt.Println(outer, err)
	// Output:
	// [(1,Ada is 36)] <nil>
	// [(1,Ada is 36) (2,Bo is -1)] <nil>
}

func ExampleGrouped_MapGroups() {
	ctx := exampleContext()
	longest := ctx.Parallelize([]string{"ant", "bee", "ape", "bear"}).
		GroupBy(func(s string) byte { return s[0] }, 1).
		MapGroups(func(letter byte, words iter.Seq[string]) string {
			return slices.MaxFunc(slices.Collect(words), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		})
	fmt.Println(longest.Collect())
	// Output: [ant bear] <nil>
}

func ExamplePairRDD_AggregateByKey() {
	ctx := exampleContext()
	type mean struct{ Sum, Count float64 }
	means, err := ctx.Range(1, 11, 1).
		MapToPair(func(v int64) (bool, float64) { return v%2 == 0, float64(v) }).
		AggregateByKey(mean{},
			func(m mean, v float64) mean { return mean{m.Sum + v, m.Count + 1} },
			func(a, b mean) mean { return mean{a.Sum + b.Sum, a.Count + b.Count} }, 1).
		MapValues(func(m mean) float64 { return m.Sum / m.Count }).
		Collect()
	fmt.Println(means, err)
	// Output: [(false,5) (true,6)] <nil>
}

func ExampleRDD_SortBy() {
	ctx := exampleContext()
	type city struct {
		Name   string
		People int
	}
	cities := ctx.Parallelize([]city{{"Ulm", 126}, {"Rome", 2873}, {"Oslo", 709}})
	sorted, err := cities.SortBy(func(c city) int { return c.People }, false).Collect()
	fmt.Println(sorted, err)
	// Output: [{Rome 2873} {Oslo 709} {Ulm 126}] <nil>
}
