package consumer

import (
	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/heldkeys"
)

// keyQueue holds, under OrderKey, the records of one key that wait while another of them runs, with
// their feeds.
type keyQueue = fifo.Queue[waitingItem]

type waitingItem struct {
	feed *feed
	item *item
}

// keyed returns the hash of the item's key under OrderKey, else 0. A null key counts as no key, an
// empty key as a key.
func (l *lane) keyed(it *item) keyHash {
	if l.keys == nil || it.parked != nil && !l.keysTiers() {
		return 0
	}
	key := it.key()
	if key == nil {
		return 0
	}
	return hashOf(key)
}

// enqueue makes an item ready, or queues it behind another of its key; the caller holds the lock.
func (l *lane) enqueue(f *feed, it *item) {
	key := l.keyed(it)
	it.hash = key
	if key == 0 {
		f.push(it)
		return
	}
	if _, busy := l.keys[key]; busy && !it.isRetry() && l.guard.HoldsRetries() {
		l.unclaimRetries()
	}
	q, busy := l.keys[key]
	if !busy {
		l.keys[key] = nil
		l.makeReady(f, it)
		return
	}
	if q == nil {
		q = new(keyQueue)
		l.keys[key] = q
	}
	l.queue(q, waitingItem{f, it})
}

// queue puts an item behind the others of its key; the caller holds the lock.
func (l *lane) queue(q *keyQueue, w waitingItem) {
	q.Push(w)
	if !w.item.isRetry() {
		l.behindOthers++
	}
	if l.held != nil && w.item.parked == nil {
		l.held.Follow(heldkeys.Key(w.item.hash))
	}
}

// makeReady makes a record ready that has its key; the caller holds the lock.
func (l *lane) makeReady(f *feed, it *item) {
	switch {
	case heldLane{l}.takesOver(it):
	case it.freed:
		l.source.pushFirst(it)
	default:
		f.push(it)
	}
}

// releaseKey makes the next record of a key ready after one has run; the caller holds the lock.
func (l *lane) releaseKey(key keyHash) {
	if key == 0 {
		return
	}
	for q := l.keys[key]; q != nil && q.Len() > 0; {
		next := q.Pop()
		if !next.item.isRetry() {
			l.behindOthers--
		}
		if !l.guard.Holds() || !next.feed.unclaim(next.item) {
			l.makeReady(next.feed, next.item)
			return
		}
	}
	delete(l.keys, key)
}

// unclaimRetries takes their keys from the retries that wait for the budget, so that it holds up
// neither the source nor redriven records. In a hold these wait, too, and do not hold up the
// source. The caller holds the lock.
func (l *lane) unclaimRetries() {
	if !l.keysTiers() {
		return
	}
	take := func(f *tierFeed, queue *fifo.Queue[*item]) {
		for queue.Len() > 0 {
			it := queue.Pop()
			f.unclaim(it)
			l.releaseKey(it.hash)
		}
	}
	for _, f := range l.tiers() {
		if take(f, &f.ready); l.guard.Holds() {
			take(f, &f.first)
		}
	}
}

// claimRetries makes retries ready, or queues them for their keys, once the budget has room, and
// redriven records once a hold is over. The tiers take turns with the keys. The caller holds the
// lock.
func (l *lane) claimRetries() {
	if !l.keysTiers() || l.guard.Holds() {
		return
	}
	tiers, first := l.tiers(), l.nextClaim
	for _, f := range tiers {
		for range f.unclaimedFirst.Len() { // a hold may begin, and bring them back
			l.enqueue(&f.feed, f.unclaimedFirst.Pop())
		}
	}
	if l.guard.HoldsRetries() {
		return
	}
	for i := range tiers {
		f := tiers[(first+i)%len(tiers)]
		for range f.unclaimed.Len() {
			l.enqueue(&f.feed, f.unclaimed.Pop())
			l.nextClaim = first + 1
		}
	}
}
