package consumer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/opentxn"
)

// inspection is what is seen of a lane from outside.
type inspection struct{ *lane }

// health returns the health of the lane; false if it is gone.
func (l inspection) health(now time.Time) (LaneHealth, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneGone {
		return LaneHealth{}, false
	}
	h := LaneHealth{
		Topic: l.topic, Partition: l.partition, Since: l.since, Why: l.why, Forwards: l.copies.Outstanding(), Running: len(l.units),
		Omitted: l.copies.Omitted(),
	}
	h.Held = l.source.held()
	h.Queued = max(l.source.queued-h.Held, 0)
	for _, f := range l.tiers() {
		if !f.parked.Retired() {
			h.Queued += f.due()
			h.Parked += f.parked.Waiting()
		}
	}
	for f := range l.read() {
		h.Offsets = append(h.Offsets, FeedOffsets{
			Topic: f.topic, Committed: f.tracker.Committed, Floor: f.tracker.Floor(), Next: f.tracker.Next, Pending: f.tracker.Pending,
		})
	}
	h.State = l.healthState(now, &h)
	if h.Omitted > 0 {
		h.Why = strings.TrimPrefix(h.Why+"; ", "; ") + fmt.Sprintf("%d dead letters were written to %s without their value, which was too large: raise its max.message.bytes", h.Omitted, l.siblings.DLQ)
	}
	return h, true
}

func (l inspection) healthState(now time.Time, h *LaneHealth) State {
	switch l.state {
	case laneStarting:
		return StateStarting
	case laneHalted:
		return StateStopped
	case laneDraining:
		return StateDraining
	}
	if all := l.overdue(now); len(all) > 0 {
		a := slices.MinFunc(all, func(a, b *attempt) int { return cmp.Compare(a.in.last.Load(), b.in.last.Load()) })
		h.Since, _ = a.deadline()
		h.Why = fmt.Sprintf("the handler runs past its timeout on %s/%d/%d", a.in.from.topic, l.partition, a.off)
		return StateStuck
	}
	wait, throttled := l.c.throttles.Now(now)
	if since, why := l.copies.Trouble(now, blockedAfter+wait); why != nil {
		h.Since, h.Why = since, strings.TrimSuffix(why.Error()+"; "+throttled, "; ")
		return StateBlocked
	}
	if since, why := l.failingFeed(now); why != "" {
		h.Since, h.Why = since, why
		return StateBlocked
	}
	if since, why := l.unnamed(now, blockedAfter+wait); why != "" {
		h.Since, h.Why = since, why
		return StateBlocked
	}
	if l.c.isPaused(l.topic) {
		h.Why = "paused by Consumer.Pause"
		return StatePaused
	}
	if l.guard.Holds() {
		is := l.guard.Status(now)
		h.Since, h.Why = is.Since, "held, but for probes: "+is.Why()
		return StateHeld
	}
	if why := l.isolation(); why != "" {
		h.Why = why
		return StateRunning
	}
	if l.guard.Noted() != nil {
		is := l.guard.Status(now)
		h.Since, h.Why = is.Since, "strained: "+is.Why()
		return StateStrained
	}
	if l.holdsRetries() {
		h.Why = "due retries wait for the retry budget"
		return StateRunning
	}
	if sum := l.awaited(); sum.N > 0 {
		h.Since, h.Why = sum.Since, sum.Why
		if h.Running > 0 || h.Queued > 0 {
			return StateRunning
		}
		return StateWaiting
	}
	if why := l.heldFull(); why != "" {
		h.Why = why
		return StateWaiting
	}
	if h.Running == 0 && h.Queued == 0 && h.Parked+h.Held > 0 {
		h.Why = "waiting until records are due"
		return StateWaiting
	}
	h.Why = cmp.Or(h.Why, throttled)
	return StateRunning
}

// blocked returns since when and why the lane is blocked; why is empty if it is not.
func (l inspection) blocked(now time.Time) (since time.Time, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var h LaneHealth
	if l.state != laneRunning || l.healthState(now, &h) != StateBlocked {
		return time.Time{}, ""
	}
	return h.Since, h.Why
}

// overdue lists the attempts of the lane that run past their timeouts despite their cancellation;
// the caller holds the lock.
func (l inspection) overdue(now time.Time) (all []*attempt) {
	for u := range l.units {
		if a := u.overdue(now); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// failingFeed returns why one of the lane's partitions cannot be read. The caller holds the lock.
func (l inspection) failingFeed(now time.Time) (since time.Time, why string) {
	for f := range l.read() {
		if at, err := f.fetchErrors.trouble(now, blockedAfter); err != nil {
			return at, fmt.Sprintf("%s/%d cannot be read from offset %d: %v: %s", f.topic, l.partition, f.tracker.Next, err, wayOut(err))
		}
	}
	return time.Time{}, ""
}

// unnamed returns since when records of the lane wait for a commit that says that they may run, if
// commits fail; the caller holds the lock.
func (l inspection) unnamed(now time.Time, patience time.Duration) (since time.Time, why string) {
	for f := range l.read() {
		at := f.window.WaitsSince()
		if at.IsZero() || now.Sub(at) < patience {
			continue
		}
		why = fmt.Sprintf("records of %s/%d wait, since no commit was accepted that names them as those that run next", f.topic, l.partition)
		if h, _ := l.c.membership.Health(now); h.CommitError != "" {
			why += ": " + h.CommitError
		}
		return at, why
	}
	return time.Time{}, ""
}

// waiting returns how many records of the lane wait for their guard: those that failed before, and
// in a hold those of the source as well, as of the last fetch that brought records.
func (l inspection) waiting(held bool) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.tiers() {
		n += int64(f.due() + f.parked.Waiting())
	}
	if held {
		n += max(l.source.end-l.source.tracker.Floor(), 0)
	}
	return n
}

// awaited sums up which open transactions hold up partitions of the lane; the caller holds the
// lock.
func (l inspection) awaited() (sum opentxn.Sum) {
	for f := range l.read() {
		sum.Add(&f.position, f.tracker.Next)
	}
	return sum
}

// isolation says which records of the lane are isolated, if any; the caller holds the lock.
func (l inspection) isolation() string {
	for f := range l.read() {
		if s := f.window.Suspects(); s.IsIsolated() {
			return fmt.Sprintf("%d processes died while they ran %s/%d from offset %d to %d: these records run in groups and one by one",
				s.Deaths, f.topic, l.partition, f.tracker.Floor(), s.Suspect-1)
		}
	}
	return ""
}

// heldFull says which bound of HoldKeys keeps records of other keys from starting; empty if none
// does. The caller holds the lock.
func (l inspection) heldFull() string {
	if l.held == nil || l.held.Full() == "" {
		return ""
	}
	return fmt.Sprintf("held keys: %d records of %d keys wait for another attempt, or behind one: %s", l.held.Held(), l.held.Len(), l.held.Full())
}
