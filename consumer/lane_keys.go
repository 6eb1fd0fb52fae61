package consumer

import (
	"hash/maphash"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
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
	if l.keys == nil {
		return 0
	}
	key := it.key()
	if key == nil {
		return 0
	}
	return keyHash(max(maphash.Bytes(keySeed, key), 1))
}

// enqueue makes an item ready, or queues it behind another record of its key; the caller holds the
// lock.
func (l *lane) enqueue(f *feed, it *item) {
	key := l.keyed(it)
	it.hash = key
	if key == 0 {
		f.ready.Push(it)
		return
	}
	q, busy := l.keys[key]
	if !busy {
		l.keys[key] = nil
		f.ready.Push(it)
		return
	}
	if q == nil {
		q = new(keyQueue)
		l.keys[key] = q
	}
	q.Push(waitingItem{f, it})
}

// releaseKey makes the next record of a key ready after one has run; the caller holds the lock.
func (l *lane) releaseKey(key keyHash) {
	q := l.keys[key]
	if q == nil || q.Len() == 0 {
		delete(l.keys, key)
		return
	}
	next := q.Pop()
	next.feed.ready.Push(next.item)
}
