package opentxn

import (
	"testing"
	"testing/synctest"
	"time"
)

// A partition that stands still is asked for less and less often. A transaction that is open for a
// moment, as all are, is none that holds it up.
func TestPosition_AwaitsWhatStaysOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Position
		asked := 0
		for range 12 * 60 { // an hour
			if p.At(10) {
				asked++
			}
		}
		if asked < 12 || asked > 24 {
			t.Errorf("an idle partition is asked for %d times in an hour, want each five minutes, and some at first", asked)
		}
		if p.At(11) || !p.At(11) {
			t.Error("a partition that was read is asked for not at the second look after that")
		}
		for i, step := range []struct {
			next       int64
			open, want bool
		}{
			{11, true, false}, {11, false, false}, // it was committed
			{11, true, false}, {11, true, false}, {11, true, true}, {11, true, true}, // one stays
			{11, false, false}, {10, true, false}, // one that was read meanwhile
		} {
			now := time.Now()
			if !step.open {
				now = time.Time{}
			}
			if got := p.found(step.next, now); got != step.want {
				t.Errorf("step %d: a transaction stays open %v, want %v", i, got, step.want)
			}
			time.Sleep(every)
		}
	})
}
