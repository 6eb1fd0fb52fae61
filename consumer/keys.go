package consumer

// keyQueue holds, under OrderKey, the records of one key that wait while another of them runs.
type keyQueue struct {
	key        string
	feeds      fifo[*feed] // where each waiting item came from
	head, tail *item
}

// enqueue makes an item ready, or lets it wait for its key; the caller holds the lock. A null key is no key; an empty
// one is.
func (l *lane) enqueue(f *feed, it *item) {
	if l.keys == nil {
		f.ready.push(it)
		return
	}
	key := it.key()
	if key == nil {
		f.ready.push(it)
		return
	}
	if q, busy := l.keys[string(key)]; busy {
		q.feeds.push(f)
		if q.tail == nil {
			q.head = it
		} else {
			q.tail.next = it
		}
		q.tail = it
		return
	}
	l.keys[string(key)] = &keyQueue{key: string(key)}
	f.ready.push(it)
}

// keyOf returns the queue of the item's key, which exists as long as the item is ready or runs.
func (l *lane) keyOf(it *item) *keyQueue {
	if key := it.key(); key != nil {
		return l.keys[string(key)]
	}
	return nil
}

// releaseKey lets the next record of the unit's key go; the caller holds the lock.
func (l *lane) releaseKey(u *unit) {
	q := u.key
	if l.keys[q.key] != q {
		return // the queues were dropped meanwhile
	}
	if q.head == nil {
		delete(l.keys, q.key)
		return
	}
	it := q.head
	q.head, it.next = it.next, nil
	if q.head == nil {
		q.tail = nil
	}
	q.feeds.pop().ready.push(it)
}
