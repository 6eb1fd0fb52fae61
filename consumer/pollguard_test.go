package consumer

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A client loses a partition and gets it again, at a lower offset, while a poll's records are not
// dispatched yet. The new lane took those for its first, and refused the ones in between as
// repetitions.
func TestPollGuard_ChangesOnlyBetweenTwoPolls(t *testing.T) {
	virtual(t, func(t *testing.T) {
		p := newPollGuard()
		poll, cancel := p.begin(t.Context())
		defer cancel()
		if poll.Err() != nil {
			t.Error("a poll is interrupted that no change waits for")
		}
		var changed, inTurn atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				p.betweenPolls(func() {
					if inTurn.Add(1) != 1 {
						t.Error("two have the turn")
					}
					time.Sleep(time.Second) // a turn may wait for a broker
					inTurn.Add(-1)
					changed.Add(1)
				})
			})
		}
		synctest.Wait()
		if n := changed.Load() + inTurn.Load(); n != 0 {
			t.Errorf("%d changes while a poll's records are in hand", n)
		}
		if poll.Err() == nil {
			t.Error("the poll, which may wait for long, is not interrupted")
		}
		p.end()
		next, cancel := p.begin(t.Context())
		defer cancel()
		if n := changed.Load(); n != 3 {
			t.Errorf("the next poll began behind %d changes, want all 3", n)
		}
		wg.Wait()
		if next.Err() != nil {
			t.Error("the next poll is interrupted though no change waits")
		}
		p.end()
	})
}
