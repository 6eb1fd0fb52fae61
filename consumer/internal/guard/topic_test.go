package guard

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLane is a lane that counts how often it is woken. It has records of its source, or none.
type fakeLane struct {
	number int32
	waits  Waits

	mu             sync.Mutex
	records        int
	woken, retries int
	retry          func(*fakeLane) // once its retries are woken
}

// onRetries has the lane do something once its retries are woken.
func (l *fakeLane) onRetries(do func(*fakeLane)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retry = do
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
	if l.retries++; l.retry != nil {
		l.retry(l)
	}
}

func (l *fakeLane) CouldProbe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records > 0
}

func (l *fakeLane) Waits() Waits { return l.waits }

// has sets how many records the lane has.
func (l *fakeLane) has(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = n
}

// times returns how often the lane was woken, and its retries, since the last call.
func (l *fakeLane) times() (woken, retries int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	woken, retries = l.woken, l.retries
	l.woken, l.retries = 0, 0
	return woken, retries
}

// topicOf makes the guard of a topic with some lanes, in virtual time.
func topicOf(t *testing.T, lanes ...*fakeLane) (topic *Topic, events func() []Event) {
	began := time.Now()
	var mu sync.Mutex
	var noted []Event
	set := defaults
	set.MaxOutage = time.Hour
	topic = NewTopic(&Env{
		Elapsed: func() time.Duration { return time.Since(began) },
		Lanes: func() (all []Lane) {
			for _, l := range slices.Backward(lanes) {
				all = append(all, l)
			}
			return all
		},
		Ended: func() bool { return false },
		Note: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, e)
		},
	}, set)
	t.Cleanup(topic.Stop)
	return topic, func() []Event {
		mu.Lock()
		defer mu.Unlock()
		return noted
	}
}

func badRun() BadRun { return BadRun{Class: "down"} }

// hold has records of the source fail until the topic is held.
func (t *Topic) hold() {
	for !t.Holds() {
		t.Ran(int64(t.env.Elapsed()), Failed, 12, badRun)
		time.Sleep(time.Second / 2)
	}
}

// The probes of a round take turns of five. A lane that has no record has no turn, and one that
// has fewer passes on what is left of its turn.
func TestTopic_LanesProbeInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lanes := []*fakeLane{{number: 0, records: 90}, {number: 1}, {number: 2, records: 2}, {number: 5, records: 90}}
		topic, _ := topicOf(t, lanes...)
		topic.hold()
		for _, l := range lanes {
			l.times()
		}
		time.Sleep(time.Second)
		var turns []int32
		for len(turns) < 20 {
			synctest.Wait()
			i := slices.IndexFunc(lanes, func(l *fakeLane) bool { woken, _ := l.times(); return woken > 0 })
			if i < 0 {
				t.Fatalf("no lane is woken after the probes of %v", turns)
			}
			l := lanes[i]
			r, ok := topic.Source(l, false)
			if !ok || !r.Probe() {
				t.Fatalf("lane %d may not probe, after the probes of %v", l.number, turns)
			}
			turns = append(turns, l.number)
			l.has(l.records - 1)
			topic.End(r, Failed, badRun)
		}
		if want := []int32{0, 0, 0, 0, 0, 2, 2, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 5, 5, 5}; !slices.Equal(turns, want) {
			t.Errorf("the lanes %v probed, want %v", turns, want)
		}
		if _, ok := topic.Source(lanes[0], false); ok {
			t.Error("a 21st probe may run in the round")
		}
	})
}

// The lane that has the turn goes, or its probe hangs. Another one probes a second later: at once
// if it gets a record then, else when the timer wakes it.
func TestTopic_TurnThatIsNotTakenPasses(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"a record came before": false, "a record comes later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gone, stays := &fakeLane{number: 0, records: 1}, &fakeLane{number: 1}
				topic, _ := topicOf(t, gone, stays)
				topic.hold()
				time.Sleep(time.Second)
				synctest.Wait()
				if !topic.Offers(gone) || topic.Offers(stays) {
					t.Error("a lane may probe though another one has the turn")
				}
				gone.has(0)
				if !late {
					stays.has(1)
				}
				stays.times()
				time.Sleep(time.Second)
				synctest.Wait()
				r, ok := topic.Source(stays, false)
				if woken, _ := stays.times(); woken == 0 && !late || !ok || !r.Probe() {
					t.Errorf("the other lane was woken %d times, and may probe: %v", woken, ok)
				}
			})
		})
	}
}

// After the first good probe all lanes are woken, and two of their records may run at a time. The
// lanes that find no room are woken in the order in which they came. At its end the hold is over,
// for their retries as well.
func TestTopic_WaitingLanesRunInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lanes []*fakeLane
		for i := range int32(8) {
			lanes = append(lanes, &fakeLane{number: i, records: 100})
		}
		topic, events := topicOf(t, lanes...)
		topic.hold()
		round := topic.Round()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := topic.Round(); got != round+1 {
			t.Errorf("the round is %d after %d", got, round)
		}
		for _, l := range lanes {
			l.times()
		}
		r, _ := topic.Source(lanes[0], false)
		topic.End(r, Good, nil)
		for _, l := range lanes {
			if woken, _ := l.times(); woken != 1 {
				t.Errorf("lane %d is woken %d times after the first good probe", l.number, woken)
			}
		}
		if topic.Round() != round+2 {
			t.Error("what failed in the round may not run again")
		}
		var running []Run
		for _, i := range []int{3, 1, 7, 0, 7} {
			r, ok := topic.Source(lanes[i], false)
			if ok != (i == 3 || i == 1) || r.Probe() {
				t.Fatalf("a record of lane %d may run: %v, with %d others", i, ok, len(running))
			}
			if ok {
				running = append(running, r)
			}
		}
		topic.End(running[0], Good, nil) // two may follow
		for i, l := range lanes {
			if woken, _ := l.times(); woken > 0 != (i == 7 || i == 0) {
				t.Errorf("lane %d is woken %d times", i, woken)
			}
		}
		topic.End(running[1], Good, nil)
		for range 400 {
			if r, ok := topic.Source(lanes[2], false); ok {
				topic.End(r, Good, nil)
			}
		}
		if topic.Holds() || topic.HoldsRetries() || topic.Noted() == nil {
			t.Error("the topic is still held, or not strained")
		}
		if _, retries := lanes[5].times(); retries == 0 {
			t.Error("no lane was woken as its retries may run")
		}
		var moves []State
		for _, e := range events() {
			moves = append(moves, e.To)
		}
		if want := []State{Strained, Held, Strained}; !slices.Equal(moves, want) {
			t.Errorf("the states were %v, want %v", moves, want)
		}
		if e := events()[1]; e.Status.Last.Class != "down" || e.Status.Bad < evidence || e.Status.Runs != e.Status.Bad {
			t.Errorf("the hold is reported as %+v", e.Status)
		}
	})
}

// Beside a good probe there are no rounds: a record whose probe fails then runs again at once.
func TestTopic_ProbeThatFailsBesideAGoodOneRunsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLane{records: 90}
		topic, _ := topicOf(t, l)
		topic.hold()
		time.Sleep(time.Second)
		good, _ := topic.Source(l, false)
		if failed, round := topic.Failed(), topic.Round(); failed != round {
			t.Errorf("a probe fails in round %d, and that is of %d", round, failed)
		}
		topic.End(good, Good, nil)
		if failed, round := topic.Failed(), topic.Round(); failed >= round {
			t.Errorf("a probe fails in round %d beside a good one, and that is of %d", round, failed)
		}
	})
}

// The budget is used up, and earns a retry a second. The timer wakes the lanes, which take turns
// with the budget: the first one that is woken may use it up.
func TestTopic_WakesRetriesOnceTheBudgetHasRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var of [3]int
		var all []*fakeLane
		var topic *Topic
		for n := range int32(len(of)) {
			all = append(all, &fakeLane{number: n})
		}
		retry := func(l *fakeLane) {
			if r, ok := topic.Retry(l); ok {
				of[l.number]++
				topic.End(r, Failed, badRun)
			}
		}
		topic, _ = topicOf(t, all...)
		for range saved {
			retry(all[0])
		}
		if _, ok := topic.Retry(all[0]); ok || !topic.HoldsRetries() {
			t.Fatal("a retry may run though the budget is used up")
		}
		for _, l := range all {
			l.onRetries(retry)
		}
		time.Sleep(9500 * time.Millisecond)
		synctest.Wait()
		if of != [3]int{saved + 3, 3, 3} {
			t.Errorf("the lanes have had %v retries", of)
		}
	})
}

// A failure costs no attempt while the topic is not closed, for an hour since the record's first
// one. A topic without a guard says so never, and holds nothing.
func TestTopic_FreeFailuresEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topic, _ := topicOf(t, &fakeLane{})
		now := time.Now()
		if topic.Free(now, now) {
			t.Error("a failure of a closed topic costs nothing")
		}
		topic.hold()
		if now = time.Now(); !topic.Free(now.Add(-59*time.Minute), now) || topic.Free(now.Add(-time.Hour), now) {
			t.Error("it is not the first hour in which a failure costs nothing")
		}
		time.Sleep(2 * quiet) // without a probe
		times, is := topic.Times(time.Now())
		if held := times[Held]; is != Strained || held < quiet || held > quiet+longestWait || topic.Rested(now.Add(-2*quiet), time.Now()) != held {
			t.Errorf("it is %v, and had the states for %v", is, times)
		}
		time.Sleep(2 * time.Hour) // without a run
		if topic.Noted() != nil {
			t.Errorf("an idle topic is strained for two hours: %+v", topic.Noted())
		}
		var none *Topic
		r, ok := none.Source(nil, false)
		if !ok || none.Holds() || none.HoldsRetries() || none.Free(now, now) || !none.Off() {
			t.Error("a topic without a guard holds records")
		}
		none.End(r, Good, nil)
		none.Ran(0, Good, 1, nil)
	})
}

// Workers of fifty topics end runs at once, while their timers run and health is read.
func TestTopic_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for range 50 {
			l, m := &fakeLane{number: 0, records: 9}, &fakeLane{number: 1, records: 9}
			topic, _ := topicOf(t, l, m)
			for _, l := range []*fakeLane{l, m} {
				wg.Go(func() {
					for i := range 30 {
						topic.Ran(int64(topic.env.Elapsed()), Failed, 12, badRun)
						time.Sleep(200 * time.Millisecond)
						if r, ok := topic.Source(l, false); ok {
							topic.End(r, Outcome(i%3), badRun)
						}
						if r, ok := topic.Retry(&fakeLane{}); ok {
							topic.End(r, Failed, badRun)
						}
						topic.Status(time.Now())
					}
				})
			}
		}
		wg.Wait()
	})
}

// Rests count between two times only, and the one that goes on counts until now.
func TestRests_Since(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var r Rests
	r.End(at(1))
	r.Begin(at(10))
	r.Begin(at(12)) // goes on
	r.End(at(20))
	r.Begin(at(40))
	for _, tt := range []struct{ since, now, want int }{
		{0, 50, 20}, {15, 50, 15}, {25, 35, 0}, {0, 15, 5}, {45, 50, 5}, {60, 50, 0}, {12, 13, 1},
	} {
		if got := r.Since(at(tt.since), at(tt.now)); got != time.Duration(tt.want)*time.Second {
			t.Errorf("from %d to %d: %v, want %d s", tt.since, tt.now, got, tt.want)
		}
	}
	for i := range 2 * mostRests {
		r.Begin(at(100 + 2*i))
		r.End(at(101 + 2*i))
	}
	if got := r.Since(at(0), at(10_000)); got != mostRests*time.Second {
		t.Errorf("%d rests are kept, of which the last %d count: %v", len(r.all), mostRests, got)
	}
}
