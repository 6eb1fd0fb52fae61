package output

import (
	"testing"
)

func TestBar_StaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, whole int64
		want        string
	}{
		{0, 10, "[....................]   0%"},
		{5, 10, "[##########..........]  50%"},
		{999, 1000, "[###################.]  99%"},
		{11, 10, "[####################] 100%"},
		{-1, 10, "[....................]   0%"},
		{0, 0, "[####################] 100%"},
	} {
		if got := Bar(c.part, c.whole); got != c.want {
			t.Errorf("Bar(%d, %d) = %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}
