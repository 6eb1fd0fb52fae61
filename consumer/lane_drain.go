package consumer

import "time"

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
		if a := u.current.attempt(); a != nil {
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
	l.held.stop()
	l.keys = nil // so that a running unit releases no further record of its key
}
