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
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/retrytopics"
)

// lane is the state machine of the unit of ownership: a source partition together with the same
// partition of each retry topic. One group member owns it at a time. The lane's lock guards all
// that decides what happens to its records.
//
// DESIGN.md, "Goroutines and locks", gives the order of the locks, and lists what no code may do
// under this one.
type lane struct {
	c         *Consumer
	topic     string
	partition int32
	topicID   kadm.TopicID
	member    string // the id of the member that was assigned the lane; see Consumer.completeCommit
	siblings  retrytopics.Siblings
	policy    *Policy
	guard     *guard.Topic // nil if there is none
	log       *slog.Logger

	// hold is true while no record may start. A worker checks nothing else before each record.
	hold atomic.Bool
	// cutOff counts the cancelled handlers that returned an error. Their records run again.
	cutOff atomic.Int64
	// abandon cancels the copies that were not sent yet.
	abandon   context.Context
	abandoned context.CancelCauseFunc

	mu              sync.Mutex
	state           laneState
	intake          intake
	startUnknown    bool  // the source's start is not known yet; awaitStarts finds it
	positionsLoaded bool  // the trackers have their starts
	begin           int64 // the source's offset by Config.Start; -1 until known
	since           time.Time
	why             string // the reason of the state, for operators
	source          *sourceFeed
	tierFeeds       atomic.Pointer[[]*tierFeed] // replaced under mu, its list never changed
	// the feed that take asks first: 0 is the source; and the tier that claims keys first
	nextFeed, nextClaim int

	units map[*unit]struct{} // being run by workers
	// Under OrderKey, the keys of records that are ready or running, and held ones; the queue of a
	// key is nil while none of its records waits. Under OrderPartition only what HoldKeys holds.
	keys map[keyHash]*keyQueue
	// how many of these wait behind another one and are no retries
	behindOthers int
	held         *heldState // nil without Config.HoldKeys
	copies       forward.Copies
	queued       bool // in the worker pool's ring; the pool's lock guards it
	// capacity 1: signals a change that a drain may wait for
	changed  chan struct{}
	stopping chan struct{} // closed when the lane begins to drain, or is lost
	gone     chan struct{} // closed by close
}

// newOrigin makes the facts that all attempts of a feed share. delay is zero for the source.
func (l *lane) newOrigin(topic string, delay time.Duration) *origin {
	from := &origin{
		source: l.topic, topicID: l.topicID, topic: topic, partition: l.partition, delay: delay,
		group: l.c.groups[len(l.c.groups)-1], policy: l.policy, clock: l.c.clock, values: l.c.values,
	}
	from.sig = newSignals(from, l.c.cfg.Group)
	return from
}

// tiers returns the feeds of the tiers known so far. Only setTiers changes the list.
func (l *lane) tiers() []*tierFeed { return *l.tierFeeds.Load() }

func (l *lane) setTiers(all []*tierFeed) { l.tierFeeds.Store(&all) }

// read iterates over the feeds whose topics are read: the source's, and those of tiers whose topic
// was not deleted.
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

// setState changes the state; the caller holds the lock.
func (l *lane) setState(to laneState, why string) {
	if l.state < laneDraining && to >= laneDraining {
		close(l.stopping)
		l.source.says = l.source.says.Over()
	}
	l.state, l.since, l.why = to, time.Now(), why
	l.updateHold()
}

// updateHold recomputes hold after a change of its inputs; the caller holds the lock.
func (l *lane) updateHold() {
	l.hold.Store(!l.isRunning() || l.c.isolator.Holds(l))
}

// mayRun reports whether a record may start, and updates hold accordingly. A lane's share shrinks
// as other lanes are assigned, so take can pass over a lane whose hold is still false. Only a lane
// with hold set is woken by recheckHold once there is room again.
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

// Wake makes the lane look again at whether it may run; it implements guard.Lane and isolate.Lane.
// In a hold its retries wait, and give their keys to the source's records.
func (l *lane) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guard.Holds() && l.behindOthers > 0 {
		l.unclaimRetries()
	}
	l.updateHold()
	l.wakeLocked()
}

// wakeLocked asks for a worker if there is work; the caller holds the lock.
func (l *lane) wakeLocked() {
	l.claimRetries()
	if l.mayStart() {
		l.c.workerPool.ready(l)
	}
	if l.isIsolated() {
		l.c.isolator.Signal()
	}
}

func (l *lane) hasWork() bool {
	return l.source.hasWork() || slices.ContainsFunc(l.tiers(), (*tierFeed).hasWork)
}

// take returns the next unit. The feeds take turns, so that neither the source nor a tier starves
// the others. While the topic is held, only the source has a turn.
func (l *lane) take() (u *unit, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claimRetries()
	switch {
	case l.mayRun():
		u = l.cut()
	case l.guard.Holds() && l.couldProbe():
		u = l.source.cutHeld()
	}
	if u == nil {
		return nil, false
	}
	l.units[u] = struct{}{}
	return u, l.hasWork() && (!u.run.Held() || l.mayStart())
}

// cut returns the next unit, nil if there is none; the caller holds the lock.
func (l *lane) cut() *unit {
	tiers := l.tiers()
	for i := range 1 + len(tiers) {
		at := (l.nextFeed + i) % (1 + len(tiers))
		cut := l.source.cut
		if at > 0 {
			cut = tiers[at-1].cut
		}
		if u := cut(); u != nil {
			l.nextFeed = at + 1
			return u
		}
	}
	return nil
}

// release takes a unit back. Its records that did not run return to the front of their feed.
func (l *lane) release(u *unit) (more bool) {
	l.mu.Lock()
	delete(l.units, u)
	if u.handled > 0 && l.state != laneGone {
		u.feed.tracker.FinishRange(u.handled-1, u.handled-1)
	}
	u.feed.busy = false
	resume := false
	switch {
	case u.parts().dead != nil: // it ends with its letter
	case u.parts().end.keeps():
		l.source.putBack(u)
		heldLane{l}.keep(u)
		resume = l.source.mayResume()
	case u.item != nil && u.stays && l.state < laneDraining:
		l.source.putItemBack(u)
	case u.tier != nil:
		l.releaseKey(u.key)
		u.tier.parked.Done(u.item.parked)
	default:
		heldLane{l}.ended(u)
		l.releaseKey(u.key)
		l.source.putBack(u)
		resume = l.source.mayResume()
	}
	more = l.mayStart()
	if l.isIsolated() || l.c.isolator.IsAlone() {
		l.c.isolator.Signal()
	}
	l.notify()
	l.mu.Unlock()
	l.ended(u)
	if resume {
		l.c.sourcePauser.apply(&u.feed.fetch)
	}
	return more
}

// notify wakes a waiting drain; the caller holds the lock.
func (l *lane) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *lane) isStarting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == laneStarting
}

func (l *lane) isGone() bool { return isClosed(l.gone) }

// isLost reports whether the lane has ended, or is just ending.
func (l *lane) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == laneGone
}

func (l *lane) setWhy(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneStarting {
		l.why = why
	}
}

// waitOn waits until c is closed or has a value. It reports false if the lane is revoked or lost
// meanwhile.
func waitOn[T any](l *lane, c <-chan T) bool {
	select {
	case <-c:
		return !l.closing()
	case <-l.stopping:
		return false
	}
}

// closing reports whether the lane is draining or gone.
func (l *lane) closing() bool { return isClosed(l.stopping) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// recheckHold recomputes hold when room may have become free, and asks for a worker if the lane may
// run again; the caller holds the lock.
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

// isFree reports whether a record may start as far as the lane is concerned, whatever the guard of
// its topic says; the caller holds the lock.
func (l *lane) isFree() bool {
	return l.state == laneRunning && l.copies.Room(l.c.cfg.MaxInFlight, l.c.share(l.c.cfg.MaxInFlightBytes)) && !l.c.isPaused(l.topic)
}

// isRunning reports whether the lane itself and its topic's guard let records start; the caller
// holds the lock.
func (l *lane) isRunning() bool { return l.isFree() && !l.guard.Holds() }

// mayStart reports whether a worker would find a record of the lane that may start; the caller
// holds the lock.
func (l *lane) mayStart() bool {
	if l.mayRun() {
		return l.hasWork()
	}
	return l.guard.Holds() && l.couldProbe() && l.guard.Offers(l)
}

// couldProbe reports whether a record of the source could start if the guard, which holds the
// topic, lets it. Suspects wait for the hold's end, and so do those behind them. The caller holds
// the lock.
func (l *lane) couldProbe() bool {
	return l.isFree() && !l.c.isolator.Holds(l) && !l.source.window.Suspects().IsIsolated() && l.source.couldProbe(l.guard.Round())
}

// ended reports a unit that ended to the guard; the caller holds no lock.
func (l *lane) ended(u *unit) { l.guard.End(u.run, u.outcome, u.failure.badRun) }

// holdsRetries reports whether due retries of the lane wait for the budget; the caller holds the
// lock.
func (l *lane) holdsRetries() bool { return l.guard.HoldsRetries() && l.heldRetries() > 0 }

// heldRetries returns how many retries are due and do not run; the caller holds the lock.
func (l *lane) heldRetries() (n int) {
	for _, f := range l.tiers() {
		n += f.ready.Len() + f.unclaimed.Len()
	}
	return n + l.source.dueHeads()
}

// isIsolated reports whether a feed has suspects that run in groups or one by one; the caller holds
// the lock.
func (l *lane) isIsolated() bool {
	return anyRead(l, func(f *feed) bool { return f.window.Suspects().IsIsolated() })
}

// runs reports whether a handler runs a record of the feed; the caller holds the lock.
func (l *lane) runs(f *feed) bool {
	for u := range l.units {
		if u.feed == f {
			return true
		}
	}
	return false
}

// reads reports whether the lane has a feed of that tier, whose topic was not deleted.
func (l *lane) reads(tier string) bool {
	return slices.ContainsFunc(l.tiers(), func(f *tierFeed) bool { return f.topic == tier && !f.parked.Retired() })
}

// running lists the running attempts.
func (l *lane) running() (all []*attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u := range l.units {
		if a := u.current.attempt(); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// keysTiers reports whether records of tiers wait for their keys: under OrderKey.
func (l *lane) keysTiers() bool {
	return l.keys != nil && (l.held == nil || l.c.cfg.Order == OrderKey)
}
