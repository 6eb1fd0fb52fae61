package consumer

import (
	"math"
	"time"
)

// maxPromoted bounds the records of a feed that are due and ready for a worker. More of them stay in the heap, from which they can give
// up their bytes.
const maxPromoted = 256

// dueCount is how many of the feed's records are due and wait for a worker, or for their key.
func (f *feed) dueCount() int { return f.inMemory - len(f.parked) }

// mayPromote reports whether there is room among the ready ones. Those that wait for their key have the bound of a lane's records, so that
// a busy key does not hold up the others.
func (f *feed) mayPromote() bool {
	return f.ready.Len() < maxPromoted && f.dueCount() < f.lane.c.cfg.MaxInFlight
}

// earliestDue takes the first record out of the heap. It stays packed for as long as it waits: unpacked it is larger, by its headers
// many times, and what waits is what was admitted by its packed size. The caller holds the lock.
func (f *feed) nextDue() *item {
	p := f.parked.pop()
	return &item{packed: &p, size: p.size()}
}

// earliestDue is when the first record of those that wait is due, MaxInt64 where none does.
func (f *feed) earliestDue() int64 {
	due := f.evicted.due()
	if len(f.parked) > 0 {
		due = min(due, f.parked[0].due)
	}
	return due
}

// maxTimer bounds how long a timer sleeps: it runs on the monotonic clock, and due times are wall-clock times, which may
// be stepped.
const maxTimer = time.Minute

// arm sets the timer for what comes next: a record that is due, or some that have to be fetched again. The caller holds the lock.
func (f *feed) arm() {
	next := int64(math.MaxInt64)
	if len(f.parked) > 0 && f.mayPromote() {
		next = f.parked[0].due
	}
	if f.evicted.n > 0 && f.mayFetch() {
		next = min(next, f.evicted.due()-soon)
	}
	if next == math.MaxInt64 {
		return
	}
	nap := min(time.Until(time.UnixMilli(next)), maxTimer)
	if f.timer == nil {
		f.timer = time.AfterFunc(nap, f.wakeDue)
		return
	}
	f.timer.Reset(nap)
}

// wakeDue is what the timer calls.
func (f *feed) wakeDue() {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.promote()
}

// promote makes the records ready that are due, has those fetched again that soon are, and sets the timer; the caller holds the lock. It
// reads the clock once, and by that reading none is early.
func (f *feed) promote() {
	l := f.lane
	if l.state >= laneDraining {
		return
	}
	now := time.Now().UnixMilli()
	for len(f.parked) > 0 && f.parked[0].due <= now && f.mayPromote() {
		l.enqueue(f, f.nextDue())
	}
	f.refetch(now)
	f.arm()
	l.wakeLocked()
}
