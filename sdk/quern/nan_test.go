package quern_test

import (
	"math"
	"slices"
	"testing"

	"github.com/quern-project/quern/sdk/quern"
)

// NaN is one key, also for the actions that return a Go map, which would take
// each NaN for another.
func TestNaNIsOneKey(t *testing.T) {
	type key struct {
		Name string
		F    float64
	}
	nan, other := math.NaN(), math.Float64frombits(0x7ff8000000000123)
	keys := quern.AsRDD(newContext(t).Parallelize([]key{{"a", nan}, {"b", nan}, {"a", 0}, {"a", other}, {"a", nan}}, 3).
		MapToPair(func(k key) (key, int) { return k, int(k.F) }))
	counts, err := quern.CountByValue(keys.Map(func(p quern.Pair[key, int]) key { return p.Key }))
	if err != nil {
		t.Fatal(err)
	}
	byKey, err := quern.AsPairs(keys).CountByKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []map[key]int64{counts, byKey} {
		var got []int64
		for k, n := range m {
			if k.Name == "a" && math.IsNaN(k.F) {
				got = append(got, n)
			}
		}
		if len(m) != 3 || !slices.Equal(got, []int64{3}) {
			t.Errorf("counts are %v, want 3 of {a NaN}", m)
		}
	}
	if m, err := quern.AsPairs(keys).CollectAsMap(); len(m) != 3 || err != nil {
		t.Errorf("CollectAsMap is %v, %v, want 3 keys", m, err)
	}
	for k, want := range map[key]int{{"a", other}: 3, {"b", nan}: 1, {"a", 0}: 1, {"c", nan}: 0} {
		if got, err := quern.AsPairs(keys).Lookup(k); len(got) != want || err != nil {
			t.Errorf("Lookup(%v) finds %d values, %v, want %d", k, len(got), err, want)
		}
	}
}
