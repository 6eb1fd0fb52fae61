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
	// Under OrderKey, the keys of records that are ready or running; the queue of a key is nil
	// while none of its records waits.
	keys map[keyHash]*keyQueue
	// how many of these wait behind another one and are no retries
	behindOthers int
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
	case u.item != nil && u.stays && l.state < laneDraining:
		l.source.putItemBack(u)
	case u.tier != nil:
		l.releaseKey(u.key)
		u.tier.parked.Done(u.item.parked)
	default:
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

// halt stops the lane at a record whose disposition is Stop.
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

// beginDrain stops the lane's intake and drops the records that have not started. It reports false
// if the lane is draining or gone already.
func (l *lane) beginDrain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining {
		return false
	}
	l.setState(laneDraining, "being revoked")
	for f := range l.read() {
		if !f.window.Off() {
			f.window.AskAgain() // the commit that hands over
		}
	}
	l.dropQueues()
	l.copies.Drain()
	return true
}

// drain completes what beginDrain began. It lets running handlers finish until the deadline,
// cancels the others, and awaits the copies. It returns the attempts whose handlers ignored their
// cancellation. Consumer.drain then commits and closes the lane, together with others.
func (l *lane) drain(deadline time.Time) (stuck []*attempt) {
	idle := func() bool { return len(l.units) == 0 }
	if !l.await(deadline, idle) {
		l.cancelRunning()
		l.await(deadline.Add(stuckAfter), idle)
	}
	// The copies get the rest of the drain time. kgo cancels only copies that were not sent. A copy
	// in flight whose acknowledgement is not awaited is a duplicate under the next owner, never a
	// loss.
	if !l.await(deadline, func() bool { return l.copies.Outstanding() == 0 }) {
		l.abandoned(ErrDraining)
	}
	return l.running()
}

// await waits until cond, evaluated under the lock, holds or the lane is gone. It reports false at
// the deadline.
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

// cancelRunning cancels every running attempt. A worker that checked hold just before the state
// changed may still start one record, and finds its unit cancelled.
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

// close ends the lane. No offset of it is marked afterwards: each path that marks one checks the
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

// running lists the running attempts.
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

// awaitIdle waits until no handler of a closed lane runs. It returns the attempts that still run at
// the deadline.
func (l *lane) awaitIdle(deadline time.Time) []*attempt {
	for len(l.running()) > 0 {
		select {
		case <-l.changed:
		case <-time.After(time.Until(deadline)):
			return l.running()
		}
	}
	return nil
}

// dropQueues drops all records that have not started; the caller holds the lock.
func (l *lane) dropQueues() {
	l.source.drop()
	for _, f := range l.tiers() {
		f.drop()
	}
	l.keys = nil // so that a running unit releases no further record of its key
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

// finish marks as finished a record that needed no copy.
func (l *lane) finish(f *feed, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneGone {
		f.tracker.Finish(offset)
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
