package consumer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
)

// The budget is used up, or has room again, at any moment: a worker of another lane says so. A
// worker that had seen a due retry then found none to take, and the process died of it.
func TestLane_TakesRetriesWhileTheBudgetChanges(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	var over atomic.Bool
	pool, lanes := pooled(t, OrderNone, 2, 1, func(u *unit) {
		ran.Add(1)
		u.stays = !over.Load()
	})
	l := lanes[0]
	var now atomic.Int64
	p := Policy{}.withDefaults()
	l.breaker = breaker.NewTopic(&breaker.Env{
		Elapsed: func() time.Duration { return time.Duration(now.Load()) },
		Lanes:   func() []breaker.Lane { return nil },
		Ended:   func() bool { return true },
		Note:    func(breaker.Event) {},
	}, p.breakerSettings())
	l.mu.Lock()
	for i := range 100 {
		parkDue(l, waitingFor(int64(i), time.Now().Add(-time.Minute), time.Now().Add(-time.Second)))
	}
	l.mu.Unlock()
	for range 100_000 {
		l.breaker.Count(now.Load(), breaker.Failed, 100, true, true, nil)
		now.Add(int64(20 * time.Second))
		l.breaker.Count(now.Load(), breaker.Good, 1, true, true, nil)
		pool.ready(l)
	}
	over.Store(true)
	l.wake()
	pool.wg.Wait()
	if ran.Load() < 100 {
		t.Errorf("%d of 100 retries were taken", ran.Load())
	}
}
