package consumer

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/heldkeys"
)

// heldLane is a lane under Config.HoldKeys. The lane's lock guards what it does. See DESIGN.md,
// "Held keys".
type heldLane struct{ *lane }

// claim has the record keep its key until its copies are safe. The caller does not hold the lock.
func (e *keyEnd) claim() {
	l := e.feed.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	e.sent, e.left = true, 1
	if e.follow != nil {
		e.left++ // until the followers are known
	}
	if _, claimed := l.keys[e.key]; !claimed && l.keys != nil {
		l.keys[e.key] = nil
	}
}

// Finish implements forward.Origin. The record and its followers are finished together, so that
// after a crash all of them run again, in order.
func (e *keyEnd) Finish(int64) {
	if e.left--; e.left > 0 {
		return
	}
	l := heldLane{e.feed.lane}
	if e.next < len(e.followers) {
		l.nextLetter(e)
		return
	}
	for _, it := range e.followers {
		e.feed.Finish(it.offset())
	}
	e.feed.Finish(e.offset)
	delete(l.held.dead, e.key)
	l.end(e.key)
	l.releaseKey(e.key)
	l.wakeLocked()
	if l.state < laneDraining && l.source.mayResume() {
		l.c.wg.Go(func() { l.c.sourcePauser.apply(&l.source.fetch) }) // not under the lock
	}
}

var _ forward.Origin = (*keyEnd)(nil)

// end ends a head that is finished. What waits behind it is free.
func (l heldLane) end(key keyHash) {
	if !l.held.End(heldkeys.Key(key)) {
		return
	}
	if q := l.keys[key]; q != nil {
		for _, w := range q.All() {
			w.item.freed = w.item.parked == nil
		}
	}
}

// ended ends the key of a unit whose record is finished without a copy.
func (l heldLane) ended(u *unit) {
	if l.held != nil && l.state < laneDraining && u.key != 0 && u.tier == nil && u.feed.tracker.IsFinished(u.item.offset()) {
		l.end(u.key)
	}
}

// keep takes back a unit whose record keeps its key.
func (l heldLane) keep(u *unit) {
	e := u.odd.end
	switch h := e.waits; {
	case l.state == laneGone:
	case h == nil && e.follow != nil && l.state < laneDraining:
		l.gather(e)
	case h != nil:
		if l.state < laneDraining {
			if u.item == nil {
				l.keys[e.key] = nil
			}
			h.item.again = false
			l.source.addQueued(1, h.item.size)
		}
		l.wait(e.key, h, heldkeys.Wait{Attempts: h.meta.Attempts, Failed: h.meta.FirstFailedAt, Due: h.meta.NotBefore})
	}
}

// wait has a head wait until it is due.
func (l heldLane) wait(key keyHash, h *heldRecord, w heldkeys.Wait) {
	followers := 0
	if q := l.keys[key]; q != nil {
		for _, behind := range q.All() {
			if behind.item.parked == nil {
				followers++
			}
		}
	}
	l.held.Hold(heldkeys.Key(key), h, h.item.offset(), w, followers)
	l.arm()
}

// takesOver has a record that an earlier owner held wait, instead of being ready. It reports false
// of any other.
func (l heldLane) takesOver(it *item) bool {
	if l.held == nil || it.parked != nil || it.hash == 0 || !l.held.Left() {
		return false
	}
	w, ok := l.held.Take(it.offset())
	if !ok {
		return false
	}
	tiers := l.siblings.Tiers
	h := &heldRecord{item: it, wait: w}
	if len(tiers) > 0 {
		h.tier = tiers[min(w.Attempts, len(tiers))-1]
	}
	l.wait(it.hash, h, w)
	return true
}

// arm sets the timer for the head that is due next.
func (l heldLane) arm() {
	at, ok := l.held.Next()
	if !ok || l.state >= laneDraining {
		return
	}
	wait := max(time.Until(at), 0)
	if l.held.timer == nil {
		l.held.timer = time.AfterFunc(wait, l.due)
		return
	}
	l.held.timer.Reset(wait)
}

// due makes the heads ready that are due. They go before other records.
func (l heldLane) due() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining {
		return
	}
	for _, h := range slices.Backward(l.held.Due(time.Now())) {
		h.item.again = true
		l.source.pushFirst(h.item)
	}
	l.arm()
	l.wakeLocked()
}

// gather collects the records of a key that were read, to be dead-lettered behind the one in front.
func (l heldLane) gather(e *keyEnd) {
	if q := l.keys[e.key]; q != nil {
		for range q.Len() {
			w := q.Pop()
			if w.item.parked != nil {
				q.Push(w) // records of tiers run
				continue
			}
			e.followers = append(e.followers, w.item)
			l.behindOthers--
		}
	}
	e.followers = append(e.followers, l.source.extract(e.key)...)
	for _, it := range e.followers {
		it.dead = true
		_, _ = l.held.Take(it.offset()) // it was in front in an earlier process
	}
	l.held.dead[e.key] = e
	e.Finish(0)
}

// nextLetter makes the next follower ready that is dead-lettered.
func (l heldLane) nextLetter(e *keyEnd) {
	if l.state < laneDraining {
		e.left = 1
		l.source.pushFirst(e.followers[e.next])
		e.next++
		l.wakeLocked()
	}
}

// noteRoom registers how much of its room the text of a commit took. The caller does not hold the
// lock.
func (l heldLane) noteRoom(length, limit int) {
	if l.held == nil {
		return
	}
	l.mu.Lock()
	resume := false
	if l.held.SetCrowded(length > limit*3/4) && l.state < laneDraining {
		l.wakeLocked()
		resume = l.source.mayResume()
	}
	l.mu.Unlock()
	if resume {
		l.c.sourcePauser.apply(&l.source.fetch)
	}
}
