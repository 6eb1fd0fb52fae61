package consumer

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
	return n
}

// isIsolated reports whether a feed has suspects that run in groups or one by one; the caller holds
// the lock.
func (l *lane) isIsolated() bool {
	return anyRead(l, func(f *feed) bool { return f.window.Suspects().IsIsolated() })
}
