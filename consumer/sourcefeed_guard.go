package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// couldProbe reports whether cutHeld would find a record.
func (f *sourceFeed) couldProbe(round int64) bool {
	if f.lane.c.cfg.Order != OrderPartition || f.lane.held != nil {
		next, _ := f.nextHeld(round)
		if next >= 0 && f.mayCut() || f.lane.c.cfg.Order != OrderPartition {
			return next >= 0
		}
	}
	return f.mayCut() && (f.nextFailed(round) >= 0 || f.mayCutNext())
}

// cutHeld returns the next record while the topic is held, nil if none may start. Package guard
// says which one that is.
func (f *sourceFeed) cutHeld() (u *unit) {
	l, round := f.lane, f.lane.guard.Round()
	next, again := -1, -1
	var behind follower
	if l.c.cfg.Order != OrderPartition || l.held != nil {
		next, behind = f.nextHeld(round)
	}
	if l.c.cfg.Order == OrderPartition && next < 0 {
		again = f.nextFailed(round)
	}
	if next < 0 && again < 0 && !f.mayCutNext() {
		return nil
	}
	fails := again >= 0
	switch {
	case behind.item != nil:
		fails = behind.item.probed > 0
	case next >= 0:
		fails = f.ready.All()[next].probed > 0
	}
	run, ok := l.guard.Source(l, fails)
	switch {
	case !ok:
		return nil
	case behind.item != nil && run.Probe() && l.guard.Round() == round:
		f.heldRuns++
		return f.cutFollower(behind, run, round)
	case next >= 0:
		f.heldRuns++
		return f.cutItem(next, run)
	case !run.Probe() && len(f.failed) > 0:
		u = f.cutFailed(0) // the others stay as they are: rounds of probes may come back
	case again >= 0:
		u = f.cutFailed(again)
	default:
		u = f.cutRecords(1)
		u.place = len(f.failed)
	}
	u.run = run
	return u
}

// nextFailed returns the index of the next record that runs again of those that failed as probes,
// -1 if none may: one that has not run in this round. The first one goes first. The others, that
// which ran longest ago first, run again once there is none that no probe has run: the first one
// may fail for good, and no other one come for hours.
func (f *sourceFeed) nextFailed(round int64) int {
	if len(f.failed) == 0 {
		return -1
	}
	if f.failed[0].round < round && f.window.MayStart(f.failed[0].rec.Offset) {
		return 0
	}
	if f.batches.Len() > 0 {
		return -1
	}
	next := -1
	for i, x := range f.failed[1:] {
		if x.round < round && f.window.IsNamed(x.rec.Offset) {
			next, round = i+1, x.round
		}
	}
	return next
}

// cutFailed makes a unit of a record that failed as a probe.
func (f *sourceFeed) cutFailed(i int) *unit {
	rec := f.failed[i].rec
	f.failed = slices.Delete(f.failed, i, i+1)
	u := &unit{feed: &f.feed, recs: []*kgo.Record{rec}, place: i}
	f.busy = true
	u.setSpan(rec.Offset, rec.Offset)
	f.removeQueued(1, forward.RecordSize(rec))
	return u
}

// nextHeld returns the index of the next record that is ready while the topic is held, -1 if none
// may start: one that has not run in this round of probes. The first one and the last one take
// turns, since those in front may all be of one tenant. Instead of it, a probe runs the follower
// behind it, if there is one.
func (f *sourceFeed) nextHeld(round int64) (at int, behind follower) {
	if behind = f.nextFollower(round); behind.item != nil {
		return behind.at, behind
	}
	all := f.ready.All()
	if f.heldRuns%2 == 1 {
		for i, it := range slices.Backward(all) {
			if it.probed < round && f.window.IsNamed(it.offset()) && !f.isBarred(it) {
				return i, behind
			}
		}
	}
	i := slices.IndexFunc(all, func(it *item) bool { return it.probed < round && !f.isBarred(it) })
	if i >= 0 && !f.window.MayStart(all[i].offset()) {
		return -1, behind
	}
	return i, behind
}

// follower is a record that waits for its key. A probe may run it before the ready one that has the
// key, since that may fail for good.
type follower struct {
	item *item
	at   int  // the index of the ready one
	far  bool // it need not be the next one of its key
}

const (
	// perRound is how many followers run in a round of probes. An outage that ends between a
	// failure and the run behind it costs the order of a key, and calls may fail slowly.
	perRound = 2
	// inVain is how many may run that are the next ones of their keys, until one far behind does.
	inVain = 4
)

// nextFollower returns the next follower to probe, the zero value if none is: of the key whose turn
// it is, the first one. Once that has failed in this round, it is one far behind, that no probe has
// run or that ran longest ago: any number in front may fail for good. The record with the key has
// failed in this round, and all that are ready have since the last round with followers.
func (f *sourceFeed) nextFollower(round int64) (next follower) {
	all, goesOn := f.ready.All(), f.followed == round
	switch {
	case f.lane.held != nil, f.lane.behindOthers == 0, goesOn && f.inRound >= perRound,
		!goesOn && slices.ContainsFunc(all, func(it *item) bool { return it.probed <= f.followed }):
		return next
	}
	for i, it := range all {
		q := f.lane.keys[it.hash]
		if q == nil || it.probed < round {
			continue
		}
		var of follower // the key
		far := f.near >= inVain
		for _, w := range q.All() {
			x := w.item
			switch {
			case w.feed != &f.feed || !f.window.IsNamed(x.offset()):
			case x.probed >= round:
				far = true
			case of.item == nil || of.far && x.probed < of.item.probed:
				of = follower{item: x, at: i, far: far}
			}
		}
		switch {
		case of.far:
			return of
		case of.item != nil && (next.item == nil || of.item.probed < next.item.probed):
			next = of
		}
	}
	return next
}

// cutFollower makes a unit of a follower. The record that has the key keeps it, and is not ready
// meanwhile.
func (f *sourceFeed) cutFollower(x follower, run guard.Run, round int64) *unit {
	u := &unit{feed: &f.feed, run: run, item: x.item, odd: &oddUnit{follows: f.ready.Remove(x.at)}}
	if f.busy = true; f.followed < round {
		f.followed, f.inRound = round, 0
	}
	f.inRound++
	if f.near++; x.far {
		f.near = 0
	}
	f.window.Begin(1, x.item.offset())
	u.setSpan(x.item.offset(), x.item.offset())
	f.removeQueued(1, x.item.size)
	return u
}

// givesWay reports whether the record of a failed probe goes to its tier, so that others can be
// read: the room is full of records that failed as probes, and none was good for MaxOutage.
func (f *sourceFeed) givesWay(u *unit) bool {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	if !f.full.Load() || !f.lane.guard.Outlasts() || len(f.lane.siblings.Tiers) == 0 || u.item == nil && u.place > 0 || u.parts().follows != nil {
		return false
	}
	return f.batches.Len() == 0 && !slices.ContainsFunc(f.ready.All(), func(it *item) bool { return it.probed == 0 })
}
