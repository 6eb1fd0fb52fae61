package consumer

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
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

// A follower of a key is probed once the record that has the key has failed in the round. No other
// of the key runs beside it. Retries that wait for the key keep their places. A lane that drains
// meanwhile takes nothing back.
func TestLane_ProbesFollowersInTurn(t *testing.T) {
	t.Parallel()
	_, lanes := pooled(t, OrderKey, 2, 1, nil)
	l := lanes[0]
	f := l.source
	l.keys = map[keyHash]*keyQueue{}
	add := func(offset int64) *item {
		it := &item{rec: &kgo.Record{Key: []byte("a"), Offset: offset}}
		f.tracker.Deliver(offset)
		f.addQueued(1, 0)
		l.enqueue(&f.feed, it)
		return it
	}
	head := add(0)
	retry := waitingFor(7, time.Now().Add(-time.Minute), time.Now().Add(-time.Second))
	retry.Key = []byte("a")
	parkDue(l, retry)
	for offset := int64(1); offset < 7; offset++ {
		add(offset)
	}
	round := int64(1)
	probe := func(good bool) int64 {
		t.Helper()
		x := f.nextFollower(round)
		if x.item == nil {
			return -1
		}
		u := f.cutFollower(x, guard.Run{}, round)
		l.units[u] = struct{}{}
		if i, _ := f.nextHeld(round); i >= 0 || f.hasWork() || f.ready.Len() > 0 {
			t.Errorf("beside follower %d of the key, another record of it may run", x.item.offset())
		}
		if u.stays = !good; good {
			u.handled = x.item.offset() + 1
		}
		l.release(u)
		if !good {
			x.item.probed = round // there is no guard, whose round it would be
		}
		return x.item.offset()
	}
	var ran []int64
	for ; round < 4; round++ {
		ran = append(ran, probe(false)) // the head has not run in this round
		head.probed = round
		for range 3 {
			ran = append(ran, probe(false))
		}
	}
	if want := []int64{-1, 1, 2, -1, -1, 1, 3, -1, -1, 1, 4, -1}; !slices.Equal(ran, want) {
		t.Errorf("the probes ran the followers %v, want %v", ran, want)
	}
	head.probed = round
	if got := probe(true); got != 1 || *f.ready.Head() != head || f.queued != 6 || l.behindOthers != 5 || !f.tracker.IsFinished(1) || f.tracker.IsFinished(0) {
		t.Errorf("after the good follower %d, %d are queued, %d behind others", got, f.queued, l.behindOthers)
	}
	l.releaseKey(f.popFrom(&f.ready, 0).hash)
	if l.tiers()[0].ready.Len() != 1 || f.ready.Len() > 0 {
		t.Error("the retry that waited behind the head has not the key next")
	}
	l.tiers()[0].ready.Pop()
	l.releaseKey(head.hash)
	(*f.ready.Head()).probed = round
	f.removeQueued(1, 0)
	u := f.cutFollower(f.nextFollower(round), guard.Run{}, round)
	u.handled = u.item.offset() + 1
	l.units[u] = struct{}{}
	l.mu.Lock()
	l.state = laneDraining
	l.dropQueues()
	l.mu.Unlock()
	l.release(u)
	if f.ready.Len() > 0 || f.queued != 0 || !f.tracker.IsFinished(u.item.offset()) {
		t.Errorf("after the drain, %d records are ready, and %d queued", f.ready.Len(), f.queued)
	}
}

// The guard asks what of each lane waits in a hold: that says for how long the hold goes on though
// no record probes.
func TestLane_SaysWhatWaitsInAHold(t *testing.T) {
	t.Parallel()
	record := func(l *lane) {
		// without a guard it is round 0
		l.enqueue(&l.source.feed, &item{rec: &kgo.Record{}, probed: -1})
		l.source.addQueued(1, 0)
	}
	runs := func(l *lane) { l.units[&unit{feed: &l.source.feed}] = struct{}{} }
	for name, c := range map[string]struct {
		order Order
		is    func(*lane)
		want  guard.Waits
	}{
		"no record":                 {OrderNone, func(*lane) {}, guard.Nothing},
		"one could probe":           {OrderNone, record, guard.Failing},
		"one failed as a probe":     {OrderNone, func(l *lane) { record(l); (*l.source.ready.Head()).probed = 0 }, guard.Failing},
		"one runs":                  {OrderNone, runs, guard.Records},
		"one waits behind it":       {OrderPartition, func(l *lane) { l.source.busy = true; l.source.addQueued(1, 0) }, guard.Records},
		"the source cannot be read": {OrderNone, func(l *lane) { l.source.fetchErrors.add(kerr.NotLeaderForPartition, time.Now()) }, guard.Kept},
		"one runs, and no other can be read": {OrderNone, func(l *lane) {
			l.source.fetchErrors.add(kerr.NotLeaderForPartition, time.Now())
			runs(l)
		}, guard.Records},
		"its topic is paused":  {OrderNone, func(l *lane) { record(l); l.c.paused.Store(&map[string]bool{"orders": true}) }, guard.Kept},
		"it cannot write":      {OrderNone, func(l *lane) { record(l); l.setState(laneStarting, "") }, guard.Kept},
		"its room is full":     {OrderNone, func(l *lane) { record(l); l.source.full.Store(true) }, guard.Kept},
		"suspects are first":   {OrderNone, func(l *lane) { record(l); l.source.window = isolatedWindow() }, guard.Nothing},
		"one stopped the lane": {OrderNone, func(l *lane) { record(l); l.setState(laneHalted, "") }, guard.Over},
	} {
		_, lanes := pooled(t, c.order, 1, 1, nil)
		l := lanes[0]
		l.stopping = make(chan struct{})
		if c.is(l); l.Waits() != c.want {
			t.Errorf("%s: the lane says %v, want %v", name, l.Waits(), c.want)
		}
		if could := l.CouldProbe(); could != (name == "one could probe" || name == "its room is full") {
			t.Errorf("%s: a record could probe: %v", name, could)
		}
	}
}
