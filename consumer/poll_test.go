package consumer

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A partition that is taken off the retry client and put on again, at an earlier offset, while a poll's records are in hand:
// the new lane took those for its first, and refused the ones in between as repetitions.
func TestTheRetryPollIsChangedOnlyWhileItHasNothingInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newRetryPoll(nil, nil)
		var interrupted, changed atomic.Int32
		p.cancel = func() { interrupted.Add(1) }
		p.inHand = true
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { p.change(func() { changed.Add(1) }) })
		}
		synctest.Wait()
		if n := changed.Load(); n != 0 {
			t.Errorf("changed %d times while a poll's records are in hand", n)
		}
		if n := interrupted.Load(); n == 0 {
			t.Error("the poll, which may wait for long, is not interrupted")
		}
		p.mu.Lock()
		p.inHand = false
		p.idle.Broadcast()
		p.mu.Unlock()
		wg.Wait()
		if changed.Load() != 3 || p.waiting != 0 {
			t.Errorf("changed %d times, %d wait; want 3, and none", changed.Load(), p.waiting)
		}
		// A loop that ended has nothing in hand any more, whatever it left noted.
		p.inHand, p.done = true, true
		p.change(func() { changed.Add(1) })
		if changed.Load() != 4 {
			t.Error("not changed after the loop ended")
		}
	})
}

func TestWhatIsToBeDoneOnTheSourcesPollInterruptsItAndIsDoneOnce(t *testing.T) {
	t.Parallel()
	var p sourcePoll
	done := 0
	p.do(func() { done++ }) // before the first poll
	first, cancel := p.begin(t.Context())
	if first.Err() == nil {
		t.Error("a poll waits while something is to be done")
	}
	cancel()
	p.run()
	second, cancel := p.begin(t.Context())
	defer cancel()
	if second.Err() != nil {
		t.Error("a poll is interrupted with nothing to do")
	}
	p.do(func() { done++ })
	if second.Err() == nil {
		t.Error("a poll that waits is not interrupted")
	}
	p.run()
	p.run()
	if done != 2 {
		t.Errorf("done %d times, want each once", done)
	}
}
