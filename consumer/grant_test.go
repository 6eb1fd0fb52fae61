package consumer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// What one commit allowed may still start when the next one is made, however little ran since. So
// the next one names it as well: else a record that kills would be no suspect.
func TestGrant_NamesAllThatMayStart(t *testing.T) {
	t.Parallel()
	g := &grant{limit: 3, interval: time.Second, asks: make(chan struct{}, 1), restUntil: new(atomic.Int64)}
	g.start(beginAt(0), 1)
	tracker, now, at := offsets.New(0, 0), time.Now(), int64(0)
	for i, n := range []int64{0, 60, 500, 5, 0, 3, 2000, 1} {
		at += n
		if n > 0 {
			g.begin(int(n), at-1)
		}
		allowed := g.until
		e := g.evidence(1, &tracker, -1, now, false)
		if e.Until < allowed || e.Until < at {
			t.Errorf("commit %d names the records below %d, while those below %d may start and those below %d have", i, e.Until, allowed, at)
		}
		g.accept(e, g.asked)
		now = now.Add(time.Second)
	}
}
