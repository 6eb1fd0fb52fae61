package consumer

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// A hold begins while a lane claims keys for redriven records that waited for the end of the last
// one. The lane went round for ever, since the hold brought them back.
func TestLaneKeys_ClaimEndsAsAHoldBegins(t *testing.T) {
	t.Parallel()
	for range 10 {
		_, lanes := pooled(t, OrderKey, 2, 1, nil)
		l := lanes[0]
		p := Policy{}.withDefaults()
		var now atomic.Int64
		now.Store(int64(time.Hour))
		l.guard = guard.NewTopic(&guard.Env{
			Elapsed: func() time.Duration { return time.Duration(now.Load()) },
			Lanes:   func() []guard.Lane { return nil },
			Ended:   func() bool { return true },
			Note:    func(guard.Event) {},
		}, p.guardSettings())
		l.keys = map[keyHash]*keyQueue{}
		f := l.tiers()[0]
		const n = 2000
		for i := range n {
			f.unclaimedFirst.Push(&item{fresh: true, parked: nil, rec: &kgo.Record{Offset: int64(i), Key: fmt.Append(nil, i%50)}})
		}
		for range 11 { // an outage, just before it is held
			for range 10 {
				l.guard.Ran(now.Load(), guard.Failed, 1, nil)
			}
			now.Add(int64(600 * time.Millisecond))
		}
		if l.guard.Holds() {
			t.Fatal("held already")
		}
		start := make(chan struct{})
		go func() {
			<-start
			for i := 0; i < 5000 && !l.guard.Holds(); i++ {
				l.guard.Ran(now.Load(), guard.Failed, 1, nil)
			}
		}()
		done := make(chan struct{})
		go func() {
			l.mu.Lock()
			close(start)
			l.claimRetries()
			l.mu.Unlock()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("claimRetries does not return: %d records wait for the hold's end, and %d have their keys", f.unclaimedFirst.Len(), f.first.Len())
		}
	}
}
