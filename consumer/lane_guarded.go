package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// Number, and the methods below, implement guard.Lane.
func (l *lane) Number() int32 { return l.partition }

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

// CouldProbe reports whether the lane has a record of the source that could start.
func (l *lane) CouldProbe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.couldProbe()
}

// Waits says what of the lane waits in a hold. One that is paused, cannot write copies, has no room
// or has not started is kept, and so is an empty one that cannot be read. Suspects wait for the end
// of the hold.
func (l *lane) Waits() guard.Waits {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, unreadable := l.source.fetchErrors.trouble(time.Now(), 0)
	switch {
	case l.state >= laneHalted:
		return guard.Over
	case !l.isFree():
		return guard.Kept
	case l.source.window.Suspects().IsIsolated():
		return guard.Nothing
	case l.source.full.Load():
		return guard.Kept
	case !l.c.isolator.Holds(l) && l.source.couldProbe(l.guard.Round()+1):
		return guard.Failing
	case l.source.queued > 0 || l.runs(&l.source.feed):
		return guard.Records
	case unreadable != nil:
		return guard.Kept
	}
	return guard.Nothing
}
