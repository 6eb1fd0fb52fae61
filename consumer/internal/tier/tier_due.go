package tier

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxReady bounds the records of a tier that are ready for a worker. More of them stay in the heap,
// from which they can be evicted.
const maxReady = 256

// dueCount returns how many of the tier's records are due and wait for a worker, or for their key.
func (t *Tier) dueCount() int { return t.inMemory - len(t.parked) }

// mayPromote reports whether another record may become ready. Records that wait for their key do
// not count as ready, so that a busy key does not hold up the others. MaxDue bounds both together.
func (t *Tier) mayPromote() bool { return t.lane.Ready() < maxReady && t.dueCount() < t.env.MaxDue }

// popDue removes the first record from the heap.
func (t *Tier) popDue() *Item {
	it := &Item{packed: t.parked.pop()}
	it.size = it.packed.size()
	return it
}

// Due returns when the next waiting record is due, in Unix milliseconds; MaxInt64 if none waits.
// While that record is evicted, the time may be too early.
func (t *Tier) Due() int64 {
	due := t.evicted.due()
	if len(t.parked) > 0 {
		due = min(due, t.parked[0].due)
	}
	return due
}

// maxTimer bounds how long a timer sleeps. Timers run on the monotonic clock, but due times are
// wall-clock times, and the wall clock may be stepped.
const maxTimer = time.Minute

// arm sets the timer for the next event: a record becomes due, or evicted records have to be
// fetched again.
func (t *Tier) arm() {
	next := int64(math.MaxInt64)
	if len(t.parked) > 0 && t.mayPromote() {
		next = t.parked[0].due
	}
	if t.evicted.n > 0 && t.mayFetch() {
		next = min(next, t.evicted.due()-soon)
	}
	if next == math.MaxInt64 {
		return
	}
	nap := min(time.Until(time.UnixMilli(next)), maxTimer)
	if t.timer == nil {
		t.timer = time.AfterFunc(nap, t.wakeDue)
		return
	}
	t.timer.Reset(nap)
}

// wakeDue is the timer's callback.
func (t *Tier) wakeDue() {
	t.lane.Lock()
	defer t.lane.Unlock()
	t.Promote()
}

// Promote makes due records ready, starts the fetch of evicted records that are due soon, and sets
// the timer. It reads the clock once, and by that reading no record is early.
func (t *Tier) Promote() {
	if t.lane.Closing() {
		return
	}
	now := time.Now().UnixMilli()
	for len(t.parked) > 0 && t.parked[0].due <= now && t.mayPromote() {
		t.lane.Enqueue(t.popDue())
	}
	t.refetch(now)
	t.arm()
	t.lane.Wake()
}

// Take hands a ready record to a worker.
func (t *Tier) Take(it *Item) {
	t.forget(1, it.size)
	if n := t.lane.Ready(); n == maxReady/2 || n == 0 {
		t.arm() // other due records may wait until fewer are ready
	}
}

// Unpack returns the record of an item, as it was read. The item belongs to a worker, by Take. From
// then on the budget counts the unpacked record too. Unpack needs no lock.
func (t *Tier) Unpack(it *Item) *kgo.Record {
	r := it.packed.unpack(t.cfg.Topic, t.cfg.Partition)
	more := unpackedSize(r)
	t.env.Budget.take(more)
	it.size += more
	return r
}

// Done ends a worker's use of a record. It returns the record's bytes to the budget.
func (t *Tier) Done(it *Item) {
	t.env.Budget.giveBack(it.size)
	if t.lane.Ready() <= maxReady/2 {
		t.Promote()
	}
}
