package breaker

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLane is a lane that notes how often it is woken.
type fakeLane struct {
	number      int32
	source, any bool

	mu             sync.Mutex
	woken, retries int
}

func (l *fakeLane) Number() int32 { return l.number }

func (l *fakeLane) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.woken++
}

func (l *fakeLane) WakeRetries() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retries++
}

func (l *fakeLane) CouldProbe() (source, any bool) { return l.source, l.source || l.any }

// times returns how often the lane was woken, and its retries, since the last call.
func (l *fakeLane) times() (woken, retries int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	woken, retries = l.woken, l.retries
	l.woken, l.retries = 0, 0
	return woken, retries
}

// topicOf makes the breaker of a topic with some lanes, in virtual time.
func topicOf(t *testing.T, lanes ...*fakeLane) (b *Topic, reading func() int64) {
	began := time.Now()
	b = NewTopic(&Env{
		Elapsed: func() time.Duration { return time.Since(began) },
		Lanes: func() (all []Lane) {
			for _, l := range slices.Backward(lanes) {
				all = append(all, l)
			}
			return all
		},
		Ended: func() bool { return false },
		Note:  func(Event) {},
	}, defaults)
	t.Cleanup(b.Stop)
	return b, func() int64 { return int64(time.Since(began)) }
}

func badRun() BadRun { return BadRun{Class: "down"} }

// The budget was used up, and has room again since a retry that ran has succeeded: no other retry
// ends, and the lanes are not told by themselves.
func TestTopic_WakesRetriesWhoeverMadeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLane{}
		b, reading := topicOf(t, l)
		b.Count(reading(), Failed, 100, true, true, badRun) // the budget is tight from here on
		time.Sleep(5 * time.Second)
		b.Count(reading(), Failed, 90, true, true, badRun)
		time.Sleep(5 * time.Second) // the hundred have left the window
		for range 10 {
			b.Begin()
		}
		l.times()
		if !b.HoldsRetries() {
			t.Fatal("ninety have failed again, ten run, and more may run")
		}
		b.Count(reading(), Good, 1, true, true, nil)
		b.End(Run{Retry: true, Outcome: Good})
		if b.HoldsRetries() {
			t.Fatal("one may run")
		}
		time.Sleep(2 * time.Second)
		if _, retries := l.times(); retries == 0 {
			t.Error("no lane was told that one of its retries may run")
		}
	})
}
