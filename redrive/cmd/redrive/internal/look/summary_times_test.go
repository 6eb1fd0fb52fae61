package look

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

func TestDrawTimes_ALongGapIsOneRow(t *testing.T) {
	t.Parallel()
	for gap, want := range map[int]int{0: 2, 1: 3, shortGap: 2 + shortGap, shortGap + 1: 3, 1000: 3} {
		at := time.UnixMilli(0)
		rows := drawTimes([]dlq.TimeCount{{From: at, Open: 1}, {From: at.Add(time.Duration(gap+1) * time.Hour), Open: 1}}, time.Hour)
		if len(rows) != want {
			t.Errorf("%d hours without a failure: %d rows, want %d", gap, len(rows), want)
		}
	}
}
