package consumer

import (
	"slices"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
)

// isFree reports whether a record may start as far as the lane is concerned, whatever the breaker
// of its topic says; the caller holds the lock.
func (l *lane) isFree() bool {
	return l.state == laneRunning && l.copies.Room(l.c.cfg.MaxInFlight, l.c.share(l.c.cfg.MaxInFlightBytes)) && !l.c.isPaused(l.topic)
}

// mayProbe reports whether the lane, which may not run, may ask the breaker for a permit; the
// caller holds the lock.
func (l *lane) mayProbe() bool {
	return l.breaker.Holds() && l.isFree() && !l.c.isolator.holds(l) && l.breaker.Offers(l)
}

// isRunning reports whether the lane itself and its topic's breaker let records start; the caller
// holds the lock.
func (l *lane) isRunning() bool { return l.isFree() && !l.breaker.Holds() }

// mayIsolate reports whether suspects of the lane may start, as soon as a commit has named them;
// the caller holds the lock.
func (l *lane) mayIsolate() bool {
	return l.isFree() && (!l.breaker.Holds() || l.breaker.Offers(l))
}

// mayStart reports whether a worker may start a record of the lane, if only as a probe; the caller
// holds the lock.
func (l *lane) mayStart() bool { return l.mayRun() || l.mayProbe() }

// permit returns the permit of the breaker under which the lane may run a record, if it is held;
// ok is false if the lane may not run any. The caller holds the lock.
func (l *lane) permit() (p breaker.Permit, ok bool) {
	if l.mayRun() {
		return p, true
	}
	if !l.mayProbe() || !l.hasWork() {
		return p, false
	}
	p = l.breaker.Acquire(l)
	return p, p.OK()
}

// ended tells the breaker of a unit that ended; the caller holds no lock.
func (l *lane) ended(u *unit) {
	if u.retry || u.permit.OK() {
		l.breaker.End(breaker.Run{Permit: u.permit, Outcome: u.outcome, Tier: u.tier != nil || u.remnant, Retry: u.retry, Repeated: u.repeated})
	}
}

// holdsRetries reports whether due retries of the lane wait for the budget; the caller holds the
// lock.
func (l *lane) holdsRetries() bool { return l.breaker.HoldsRetries() && l.heldRetries() > 0 }

// heldRetries returns how many retries are due and do not run; the caller holds the lock.
func (l *lane) heldRetries() (n int) {
	for _, f := range l.tiers() {
		n += f.ready.Len() + f.unclaimed.Len()
	}
	return n
}

// Number, and the methods below, implement breaker.Lane.
func (l *lane) Number() int32 { return l.partition }

// Wake makes the lane look again at whether it may run.
func (l *lane) Wake() { l.wake() }

// WakeRetries makes the lane look again at its due retries. Others that wait for their keys go
// first: the budget may be used up again in a moment.
func (l *lane) WakeRetries() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behindOthers > 0 {
		l.unclaimRetries()
	}
	for _, f := range l.tiers() {
		f.parked.Promote()
	}
	l.wakeLocked()
}

// CouldProbe reports whether the lane has a record that it could run as a probe: one of the source
// that did not fail as a probe before, or any. A suspect is one, too: the isolator names it when
// the lane is woken.
func (l *lane) CouldProbe() (source, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isFree() || l.c.isolator.holds(l) {
		return false, false
	}
	return l.source.hasUnprobed(), l.hasWork() || l.hasSuspects()
}

// isIsolated reports whether a feed has suspects that run in groups or one by one; the caller holds
// the lock.
func (l *lane) isIsolated() bool {
	return anyRead(l, func(f *feed) bool { return f.grant.isIsolated() })
}

// hasSuspects reports whether suspects wait to be named; the caller holds the lock.
func (l *lane) hasSuspects() bool {
	return anyRead(l, func(f *feed) bool {
		return f.grant.isIsolated() && slices.ContainsFunc(f.waiting(), f.grant.isSuspect)
	})
}
