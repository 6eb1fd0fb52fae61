package dlq

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whom an incident hurts is said as exactly as it is known: the counts add up, none is too low, and
// none is too high by more than the bound.
func TestValueCounts_AreWithinTheirBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{10, 12, 40}).Draw(t, "limit")
		c := &ValueCounts{limit: limit}
		want := map[string]int64{}
		var n, others int64
		for _, v := range rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, 60), rapid.Just(-1), rapid.Just(-2)), rapid.SampledFrom([]int{0, 500}).Draw(t, "least"), 700).Draw(t, "values") {
			switch v {
			case -1:
				c.AddWithout()
				others++
			case -2:
				c.AddHidden()
				others++
			default:
				c.Add(fmt.Sprint(v))
				want[fmt.Sprint(v)]++
				n++
			}
		}
		got := c.Top()
		sum, shown := got.Others, map[string]bool{}
		for i, v := range got.Top {
			sum += v.Open
			shown[v.Value] = true
			if v.AtLeast > want[v.Value] || v.Open < want[v.Value] || v.Open-v.AtLeast > n/int64(limit) {
				t.Errorf("%q has %d to %d letters, want %d", v.Value, v.AtLeast, v.Open, want[v.Value])
			}
			if i > 0 && got.Top[i-1].Open < v.Open {
				t.Errorf("%q with %d letters comes behind %d", v.Value, v.Open, got.Top[i-1].Open)
			}
			if got.Exact && v.Open != v.AtLeast {
				t.Errorf("%q has %d or %d letters, and that is said to be exact", v.Value, v.AtLeast, v.Open)
			}
		}
		if sum != n || got.Without+got.Hidden != others || len(got.Top) != min(len(want), maxTopValues, limit) {
			t.Errorf("%+v of %d letters with a value and %d without", got, n, others)
		}
		if got.Exact != (len(want) <= limit) || got.Exact && got.Values != len(want) {
			t.Errorf("%d values, exact %v; there are %d, and room for %d", got.Values, got.Exact, len(want), limit)
		}
		for v, count := range want {
			if count > n/int64(maxTopValues) && !shown[v] {
				t.Errorf("%q with %d of %d letters is not shown", v, count, n)
			}
		}
	})
}

func TestValueCounts_TakeBoundedMemory(t *testing.T) {
	t.Parallel()
	c := &ValueCounts{}
	long := strings.Repeat("x", 10_000)
	for i := range 3 * maxValues {
		c.Add(fmt.Sprintf("%06d%s", i, long))
	}
	if len(c.at) != maxValues || len(c.order) != maxValues {
		t.Errorf("%d values are kept", len(c.at))
	}
	for v := range c.at {
		if len(v) > maxValue {
			t.Fatalf("%d bytes of a value are kept", len(v))
		}
	}
	if top := c.Top(); top.Exact || len(top.Top) != maxTopValues {
		t.Errorf("the top of many values is %+v", top)
	}
}
