package consumer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/retrytopics"
)

// The budget is used up, or has room again, at any moment: a worker of another lane says so. A
// worker that had seen a due retry then found none to take, and the process died of it.
func TestLane_TakesRetriesWhileTheBudgetChanges(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	pool, lanes := pooled(t, OrderNone, 2, 1, func(*unit) { ran.Add(1) })
	l := lanes[0]
	var now atomic.Int64
	p := Policy{}.withDefaults()
	l.guard = guard.NewTopic(&guard.Env{
		Elapsed: func() time.Duration { return time.Duration(now.Load()) },
		Lanes:   func() []guard.Lane { return nil },
		Ended:   func() bool { return true },
		Note:    func(guard.Event) {},
	}, p.guardSettings())
	const n = 1000
	l.mu.Lock()
	for i := range n {
		parkDue(l, waitingFor(int64(i), time.Now().Add(-time.Minute), time.Now().Add(-time.Second)))
	}
	l.mu.Unlock()
	for began := time.Now(); ran.Load() < n; l.WakeRetries() {
		for range 20 {
			if r, ok := l.guard.Retry(l); ok {
				l.guard.End(r, guard.Failed, nil)
			}
		}
		now.Add(int64(20 * time.Second))
		if r, ok := l.guard.Retry(l); ok {
			l.guard.End(r, guard.Void, nil)
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d of %d retries were taken", ran.Load(), n)
		}
	}
	pool.wg.Wait()
}

// The budget lets few retries of one key run. The tiers take turns with them.
func TestLane_TiersTakeTurnsWithKeys(t *testing.T) {
	t.Parallel()
	l := bench(t, time.Second)
	l.keys = map[keyHash]*keyQueue{}
	l.setTiers(append(l.tiers(), newTierFeed(l, retrytopics.Tier{Topic: "orders.retry.30s", Delay: 30 * time.Second}, false)))
	for _, f := range l.tiers() {
		f.unclaimed.Push(&item{rec: &kgo.Record{Key: []byte("hot")}})
	}
	ready := make([]int, 2)
	for range 10 {
		l.claimRetries()
		for i, f := range l.tiers() {
			ready[i] += f.ready.Len()
		}
		l.unclaimRetries()
	}
	if ready[0] != 5 || ready[1] != 5 {
		t.Errorf("the tiers had the key %v times, want 5 and 5", ready)
	}
}
