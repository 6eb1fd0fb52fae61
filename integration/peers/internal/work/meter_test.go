package work

import "testing"

func TestPercentile_IsTheNearestRank(t *testing.T) {
	t.Parallel()
	var hundred []int64
	for i := range int64(100) {
		hundred = append(hundred, 100-i)
	}
	for _, tt := range []struct {
		values  []int64
		percent int
		want    int64
	}{{nil, 99, 0}, {[]int64{7}, 99, 7}, {[]int64{3, 1, 2}, 50, 2}, {hundred, 99, 99}, {append(hundred, 101), 99, 100}} {
		if got := percentile(tt.values, tt.percent); got != tt.want {
			t.Errorf("percentile %d of %d values: got %d, want %d", tt.percent, len(tt.values), got, tt.want)
		}
	}
}
