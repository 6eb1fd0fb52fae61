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

func (l *fakeLane) CouldProbe() (source, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source, l.source || l.any
}

// has says whether the lane has a record of the source.
func (l *fakeLane) has(source bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = source
}

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

// One record of each lane fails for good. The probes take turns, so that no such record holds the
// breaker open. A lane whose source has work goes before one that has retries only, and one that
// has nothing has no turn.
func TestTopic_ProbesAnotherLaneEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lanes := []*fakeLane{{number: 0, source: true}, {number: 1}, {number: 2, source: true}, {number: 3, any: true}, {number: 5, source: true}}
		b, reading := topicOf(t, lanes...)
		b.Count(reading(), Failed, 100, false, false, badRun)
		probe := func() (of int32) {
			of = -1
			for range 40 { // seconds
				for _, l := range lanes {
					l.times()
				}
				time.Sleep(time.Second)
				for _, l := range lanes {
					if woken, _ := l.times(); woken == 0 {
						continue
					}
					if p := b.Acquire(l); p.OK() {
						b.End(Run{Permit: p, Outcome: Failed})
						return l.number
					}
				}
			}
			return of
		}
		var turns []int32
		for range 7 {
			turns = append(turns, probe())
		}
		if want := []int32{0, 2, 5, 0, 2, 5, 0}; !slices.Equal(turns, want) {
			t.Errorf("the lanes %v probed, want %v", turns, want)
		}
		for _, l := range lanes {
			l.has(false)
		}
		if of := probe(); of != 3 {
			t.Errorf("lane %d probed, want 3, which has retries", of)
		}
	})
}

// The lane that has the turn goes, or has no work any more. Another one probes a second later: at
// once if it gets a record then, else when the timer wakes it.
func TestTopic_TurnThatIsNotTakenPasses(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"a record came before": false, "a record comes later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gone, stays := &fakeLane{number: 0, source: true}, &fakeLane{number: 1}
				b, reading := topicOf(t, gone, stays)
				b.Count(reading(), Failed, 100, false, false, badRun)
				time.Sleep(1500 * time.Millisecond)
				if b.Offers(stays) {
					t.Error("a lane may probe though another one has the turn")
				}
				gone.has(false)
				stays.has(!late)
				stays.times()
				time.Sleep(time.Second)
				if woken, _ := stays.times(); woken == 0 && !late || !b.Acquire(stays).Probe() {
					t.Errorf("the other lane was woken %d times, and may not probe", woken)
				}
			})
		})
	}
}
