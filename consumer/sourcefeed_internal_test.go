package consumer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// While a join waits, records beyond what a commit has named may start, until a session is over.
// That time ends between two looks of a worker, too: it then found no record to take, and the
// process died of it.
func TestSourceFeed_CutsWhileCommitsRestNoMore(t *testing.T) {
	t.Parallel()
	_, lanes := pooled(t, OrderNone, 1, 1, func(*unit) {})
	l := lanes[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.source
	l.policy.CrashLimit = 3
	f.start(beginAt(0))
	l.enqueue(&f.feed, &item{rec: &kgo.Record{Topic: "orders"}, size: 1})
	f.addQueued(1, 1)
	var over atomic.Bool
	defer over.Store(true)
	go func() {
		for !over.Load() {
			l.c.restUntil.Store(time.Now().Add(time.Hour).UnixNano())
			l.c.restUntil.Store(0)
		}
	}()
	began := time.Now()
	for cuts, refusals := 0, 0; cuts < 10_000 || refusals < 10_000; {
		u := f.cut()
		if u == nil {
			refusals++
		} else {
			cuts++
			f.busy = false
			f.ready.PushFront(u.item)
			f.addQueued(1, u.item.size)
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d records were taken, and %d were not, in a minute; want 10,000 of both", cuts, refusals)
		}
	}
}
