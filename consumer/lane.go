package consumer

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/retrytopics"
)

// laneState is the lane's place in its life. DESIGN.md, "Lanes", draws the transitions; setState is
// the only writer.
type laneState uint8

const (
	// assigned; its siblings and offsets are being found, nothing runs yet
	laneStarting laneState = iota
	laneRunning            // records run
	// on a record whose disposition is Stop: nothing runs until the lane moves
	laneHalted
	laneDraining // being given up: nothing starts, what runs may finish
	laneGone     // given up or lost: whatever still comes back is ignored
)

// intake says which lane the polled records of a source belong to. DESIGN.md, "Intake", says why.
type intake uint8

const (
	// kgo was not given the source for the lane: they are another lane's
	intakeClosed intake = iota
	// kgo reads it, or is about to, from a position that is not the lane's: they come again when
	// that is set
	intakeReseeking
	intakeOpen // they are the lane's
)

// lane is the unit of ownership: a source partition together with the same partition of each retry
// topic. One group member owns it at a time, and everything that decides what its records do
// happens under its lock.
//
// DESIGN.md, "Goroutines and locks", has the place of its lock among the others, and what may not
// be done under it.
type lane struct {
	c         *Consumer
	topic     string
	partition int32
	topicID   kadm.TopicID
	member    string // the member id under which the lane was assigned; see Consumer.admit
	siblings  retrytopics.Siblings
	policy    *Policy
	log       *slog.Logger

	// hold is true while no record may start: the one thing a worker looks at before each record.
	hold atomic.Bool
	// abandon ends the copies that were not sent yet.
	abandon   context.Context
	abandoned context.CancelCauseFunc

	mu              sync.Mutex
	state           laneState
	intake          intake
	startUnknown    bool  // where its source starts is not known yet; seek finds it
	positionsLoaded bool  // its trackers know where each partition starts
	begin           int64 // where Config.Start puts its source; -1 until that is known
	since           time.Time
	why             string // of the state, for people
	source          *sourceFeed
	tierFeeds       atomic.Pointer[[]*tierFeed] // the list is never changed; set under mu
	// which feed is asked first for the next unit: the source is 0
	nextFeed int

	units map[*unit]struct{} // what workers run now
	// the keys of records that are ready or run; nil behind one for which none waits
	keys   map[keyHash]*keyQueue
	copies forward.Copies
	queued bool // it stands in the ring of slots, whose lock guards that
	// has room for one: something a drain waits for may have happened
	changed  chan struct{}
	stopping chan struct{} // closed when the lane begins to be given up
	gone     chan struct{} // closed by forget
}

// newOrigin is what the attempts at the records of a feed have in common: of the lane's source, or
// of a tier with that delay.
func (l *lane) newOrigin(topic string, delay time.Duration) *origin {
	from := &origin{
		source: l.topic, topicID: l.topicID, topic: topic, partition: l.partition, delay: delay,
		group: l.c.groups.oldest(), policy: l.policy, clock: l.c.clock, values: l.c.values,
	}
	from.sig = newSignals(from, l.c.groups.own())
	return from
}

// tiers are the feeds of tiers that there are by now. The caller does not change the list; a longer
// one takes its place when a tier is found.
func (l *lane) tiers() []*tierFeed { return *l.tierFeeds.Load() }

func (l *lane) setTiers(all []*tierFeed) { l.tierFeeds.Store(&all) }

// read are the feeds whose topics are read: the source's, and those of the tiers whose topics were
// not deleted.
func (l *lane) read() iter.Seq[*feed] {
	return func(yield func(*feed) bool) {
		if !yield(&l.source.feed) {
			return
		}
		for _, f := range l.tiers() {
			if !f.parked.Retired() && !yield(&f.feed) {
				return
			}
		}
	}
}

func (l *lane) String() string { return fmt.Sprintf("%s/%d", l.topic, l.partition) }

// setState moves the lane; the caller holds its lock.
func (l *lane) setState(to laneState, why string) {
	if l.state < laneDraining && to >= laneDraining {
		close(l.stopping)
	}
	l.state, l.since, l.why = to, time.Now(), why
	l.updateHold()
}

// updateHold recomputes hold after anything that it depends on; the caller holds the lock.
func (l *lane) updateHold() {
	room := l.copies.Room(l.c.cfg.MaxInFlight, l.c.share(l.c.cfg.MaxInFlightBytes))
	l.hold.Store(l.state != laneRunning || !room || l.c.isPaused(l.topic))
}

// mayRun reports whether a record may start, and has hold say the same: a lane that is passed over
// for lack of room (its share shrinks as others are assigned) must be woken when there is room
// again, and recheckHold sees that by hold.
func (l *lane) mayRun() bool {
	l.updateHold()
	return !l.hold.Load()
}

// run lets the lane run, once its siblings exist and its offsets are committed.
func (l *lane) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneStarting {
		l.setState(laneRunning, "")
		l.wakeLocked()
	}
}

// wake asks for workers if there is work.
func (l *lane) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.updateHold()
	l.wakeLocked()
}

func (l *lane) wakeLocked() {
	if l.mayRun() && l.hasWork() {
		l.c.workerPool.ready(l)
	}
}

func (l *lane) hasWork() bool {
	return l.source.hasWork() || slices.ContainsFunc(l.tiers(), (*tierFeed).hasWork)
}

// take hands out the next unit. The feeds take turns, so neither the source nor a tier starves the
// others.
func (l *lane) take() (u *unit, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mayRun() {
		return nil, false
	}
	tiers := l.tiers()
	for i := range 1 + len(tiers) {
		at := (l.nextFeed + i) % (1 + len(tiers))
		switch {
		case at == 0 && l.source.hasWork():
			u = l.source.cut()
		case at > 0 && tiers[at-1].hasWork():
			u = tiers[at-1].cut()
		default:
			continue
		}
		l.nextFeed = at + 1
		l.units[u] = struct{}{}
		return u, l.hasWork()
	}
	return nil, false
}

// release takes a unit back. What of it did not run goes to the front of its feed again.
func (l *lane) release(u *unit) (more bool) {
	l.mu.Lock()
	delete(l.units, u)
	if u.handled > 0 && l.state != laneGone {
		u.feed.tracker.FinishRange(u.handled-1, u.handled-1)
	}
	u.feed.busy = false
	if u.key != 0 {
		l.releaseKey(u.key)
	}
	resume := false
	if u.tier != nil {
		u.tier.parked.Done(u.item.parked)
	} else {
		l.source.putBack(u)
		resume = l.source.mayResume()
	}
	more = l.mayRun() && l.hasWork()
	l.notify()
	l.mu.Unlock()
	if resume {
		l.c.sourcePauser.apply(&u.feed.fetch)
	}
	return more
}

// notify wakes a drain; the caller holds the lock.
func (l *lane) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// halt stops the lane on a record whose disposition is Stop.
func (l *lane) halt(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.haltLocked(why)
}

func (l *lane) haltLocked(why string) {
	if l.state == laneRunning {
		l.setState(laneHalted, why)
	}
}

// beginDrain stops the lane's intake and lets go of what has not started. It reports false where
// the lane is given up already.
func (l *lane) beginDrain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining {
		return false
	}
	l.setState(laneDraining, "being given up")
	l.dropQueues()
	l.copies.Drain()
	return true
}

// drain goes on where beginDrain ended: let what runs finish until the deadline, cancel the rest,
// await the copies. The commit and forget that complete the hand-over are evict's, which drains
// many lanes at once and commits them together. It lists the attempts whose handlers ignored their
// cancelling.
func (l *lane) drain(deadline time.Time) (stuck []*attempt) {
	idle := func() bool { return len(l.units) == 0 }
	if !l.await(deadline, idle) {
		l.cancelRunning()
		l.await(deadline.Add(stuckAfter), idle)
	}
	// The copies get what is left of the drain time. kgo cancels only what was not sent: the rest
	// is in flight, and a copy whose acknowledgement nobody awaits is a duplicate under the next
	// owner, never a loss.
	if !l.await(deadline, func() bool { return l.copies.Outstanding() == 0 }) {
		l.abandoned(ErrDraining)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for u := range l.units {
		if a := u.current.Load(); a != nil {
			stuck = append(stuck, a)
		}
	}
	return stuck
}

// await waits until cond, evaluated under the lock, holds.
func (l *lane) await(deadline time.Time, cond func() bool) bool {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	for {
		l.mu.Lock()
		ok := cond() || l.state == laneGone
		l.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-l.changed:
		case <-t.C:
			return false
		}
	}
}

// cancelRunning cancels every running attempt. A worker that passed its look at hold just before
// the state changed may still start one more record; it finds the unit cancelled.
func (l *lane) cancelRunning() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u := range l.units {
		u.cancelled.Store(true)
		if a := u.current.Load(); a != nil {
			a.abandon(ErrDraining)
		}
	}
}

// close ends the lane. Nothing marks an offset of it afterwards: every path that could looks at the
// state first, under the lock.
func (l *lane) close() {
	l.mu.Lock()
	if l.state == laneGone {
		l.mu.Unlock()
		return
	}
	l.setState(laneGone, "")
	l.dropQueues()
	l.copies.Close()
	l.mu.Unlock()
	if len(l.running()) > 0 {
		l.cancelRunning()
		l.c.addAbandoned(l)
	}
	l.abandoned(ErrDraining)
	l.c.sourcePauser.close(&l.source.fetch)
	for _, f := range l.tiers() {
		l.c.retryPauser.close(&f.fetch)
	}
	l.notify()
	close(l.gone)
}

// running lists the attempts that run.
func (l *lane) running() (all []*attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u := range l.units {
		if a := u.current.Load(); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// awaitIdle waits until no handler of a lane that is gone runs.
func (l *lane) awaitIdle(deadline time.Time) bool {
	for len(l.running()) > 0 {
		select {
		case <-l.changed:
		case <-time.After(time.Until(deadline)):
			return len(l.running()) == 0
		}
	}
	return true
}

// dropQueues lets go of everything that has not started; the caller holds the lock.
func (l *lane) dropQueues() {
	l.source.drop()
	for _, f := range l.tiers() {
		f.drop()
	}
	l.keys = nil // a unit that runs still has none to give on
}

func (l *lane) isStarting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == laneStarting
}

func (l *lane) isGone() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

func (l *lane) setWhy(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneStarting {
		l.why = why
	}
}

// waitFor waits, unless the lane is given up before.
func (l *lane) waitFor(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !l.closing()
	case <-l.stopping:
		return false
	}
}

// waitOn waits for a channel, unless the lane is given up before.
func (l *lane) waitOn(c <-chan struct{}) bool {
	select {
	case <-c:
		return !l.closing()
	case <-l.stopping:
		return false
	}
}

// closing reports whether the lane is being given up.
func (l *lane) closing() bool {
	select {
	case <-l.stopping:
		return true
	default:
		return false
	}
}

// finish notes a record as done that needed no copy.
func (l *lane) finish(f *feed, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneGone {
		f.tracker.Finish(offset)
	}
}

// recheckHold recomputes hold after something was given back, and calls for workers when the lane
// may run again; the caller holds the lock.
func (l *lane) recheckHold() {
	was := l.hold.Load()
	l.updateHold()
	if was && !l.hold.Load() {
		l.wakeLocked()
	}
}

// isRead reports whether kgo reads the lane's source, or is about to.
func (l *lane) isRead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.intake != intakeClosed
}
