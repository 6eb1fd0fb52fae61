package consumer

import (
	"testing"
	"testing/synctest"
	"time"
)

// The host's clock is set while a record is with a worker, or while it waits. The worker finds that
// the record is not due, and it is parked again. A copy is written only when the least stay is
// over, by the monotonic clock.
func TestTierFeed_ParksAgainWhatIsNotDue(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := idle(t, Config{Policy: Policy{Jitter: -1}}, func() { t.Error("ran before its time") })
		l := held(c, 3, "m")
		defer l.close()
		f := l.tiers()[0]
		now := time.Now()
		l.mu.Lock()
		f.parked.Read([16]byte{}, 0, now)
		f.tracker.Deliver(0)
		l.mu.Unlock()
		r := runner{c: c, lane: l, feed: &f.feed, unit: &unit{feed: &f.feed, tier: f}}
		if _, _, ok := r.unpack(waitingFor(0, now, now.Add(6*24*time.Hour))); ok {
			t.Fatal("it is to run")
		}
		l.mu.Lock()
		f.parked.Promote() // as at the end of a unit
		l.mu.Unlock()
		check := func(copies int) {
			t.Helper()
			l.mu.Lock()
			defer l.mu.Unlock()
			if got := l.copies.Outstanding(); got != copies || f.parked.Waiting() != 1-copies || f.tracker.Pending != 1 {
				t.Fatalf("after %v: %d copies, %d parked, %d unfinished; want %d, %d, 1",
					time.Since(now), got, f.parked.Waiting(), f.tracker.Pending, copies, 1-copies)
			}
		}
		check(0)
		const leastStay = 84 * time.Hour // half of the retention
		time.Sleep(leastStay - time.Millisecond)
		synctest.Wait()
		check(0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		check(1)
	})
}
