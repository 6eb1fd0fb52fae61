package tier

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
)

// The tier of one partition: tier_due.go hands out records, tier_evict.go makes room,
// tier_refetch.go fetches again, tier_stay.go writes again before retention deletes.

// Lane is the lane that owns a tier. Its lock guards the tier. The tier holds the lock when it
// calls the methods, except where they say otherwise.
type Lane interface {
	sync.Locker
	// Closing reports whether the lane is revoked: no record becomes ready any more.
	Closing() bool
	// Enqueue takes a due record, which becomes ready or waits for its key.
	Enqueue(*Item)
	// Ready returns how many records of the tier wait only for a worker.
	Ready() int
	// Wake starts workers if there is work for them.
	Wake()
	// Reopen says that the lane may resume fetching the partition, for which Admit found no room.
	Reopen()
	// OutOfLog is called, without the lock, when the partition's log ends before a record that was
	// read from it: it is no longer the same log.
	OutOfLog()
	// Context returns a context that ends when the lane is gone. It is called with or without the
	// lock.
	Context() context.Context
}

// Env is what a process gives to all its tiers. It must not change after [New].
type Env struct {
	Budget *Budget
	// MaxDue bounds the due records of a tier that wait in memory for a worker or for their key.
	MaxDue int
	// Fetch reads committed records of a partition, from an offset on: about so many bytes. next is
	// the offset after the last record read. The error is ErrOutOfLog if the log ends before from.
	Fetch func(ctx context.Context, p Partition, from, bytes int64) (got []*kgo.Record, next int64, err error)
	// Retention returns how long a tier's topic keeps a record; negative means for ever. The answer
	// may change.
	Retention func(topic string, delay time.Duration) time.Duration
	// Expired is called, without a lock, with the number of parked records that a partition's log
	// no longer has.
	Expired func(topic string, partition int32, n int64)
	// Go runs a goroutine that ends soon after the lane's context.
	Go       func(func())
	Throttle *logthrottle.Throttle
}

// Tier holds the waiting records of one retry partition. See the package's comment for its lock.
type Tier struct {
	env     *Env
	lane    Lane
	cfg     Config
	tracker *offsets.Tracker // of the partition: the tier finishes expired records in it

	id            [16]byte    // of the topic at the last Read
	retired       atomic.Bool // the topic was deleted, and is no longer read
	parked        dueHeap
	evicted       evictedIndex
	timer         *time.Timer // for the next of the parked and evicted records
	inMemory      int         // records in memory without a worker, due or not
	inMemoryBytes int64       // the bytes of these in the budget
	refetching    bool        // some of the evicted records are being fetched again
	failures      int         // passes in a row that failed without a record; refetchLoop's own
	failedBlock   int64       // the block of the last of these; refetchLoop's own
	starved       bool        // they would be fetched, if there were room
	starvedOf     int64       // size of the smallest record that is due soon and found no room
	readMarks     []readMark  // in order
}

// New makes the tier of a partition. The tier finishes expired records in tracker, which the lane's
// lock guards.
func New(env *Env, lane Lane, cfg Config, tracker *offsets.Tracker) *Tier {
	return &Tier{env: env, lane: lane, cfg: cfg, tracker: tracker}
}

// Read registers that the records from an offset on are read now, from the topic with the given id.
// It is called before they are admitted.
func (t *Tier) Read(id [16]byte, from int64, now time.Time) {
	t.id = id
	t.markRead(from, now)
}

// Admit takes a record that was just read. It reports whether the record is overdue and found no
// room. Then the lane should pause fetching: the records after it can as well wait on the broker.
func (t *Tier) Admit(r *kgo.Record, now time.Time) (refused bool) {
	due := t.dueOf(r, now, now)
	return !t.admit(r, due) && due <= now.UnixMilli()
}

// admit parks a copy of a record, or without room only registers when it is due. There is always
// room for the tier's next record, which is due before all that the tier holds.
func (t *Tier) admit(r *kgo.Record, due int64) (kept bool) {
	if size := packedSize(packedLen(r)); !t.isNext(due) && !t.env.Budget.admits(due, size) {
		t.evicted.add(r.Offset, due, size)
		t.env.Budget.evictedBytes.Add(size)
		return false
	}
	t.keep(pack(r, due))
	return true
}

// isNext reports whether a record that is due at the given time would be the tier's next one.
func (t *Tier) isNext(due int64) bool {
	return t.dueCount() == 0 && (len(t.parked) == 0 || due < t.parked[0].due)
}

// keep adds a record to the heap and the budget.
func (t *Tier) keep(p packedRecord) {
	if t.inMemory == 0 {
		t.env.Budget.hold(t)
	}
	t.env.Budget.take(p.size())
	t.inMemory++
	t.inMemoryBytes += p.size()
	t.parked.push(p)
}

// forget takes records off the tier's books. It does not return their bytes to the budget: a worker
// may still use them.
func (t *Tier) forget(n int, bytes int64) {
	if n == 0 {
		return
	}
	t.inMemory -= n
	t.inMemoryBytes -= bytes
	if t.inMemory == 0 {
		t.env.Budget.emptied(t)
	}
}

// AwaitRoom makes the budget call [Lane.Reopen] when the lane may resume fetching the partition.
func (t *Tier) AwaitRoom() { t.env.Budget.pause(t) }

// reopen resumes a fetch that awaits room, and reports whether it did. It takes the lane's lock.
func (t *Tier) reopen(roomy bool) bool {
	t.lane.Lock()
	defer t.lane.Unlock()
	if t.refetching || t.evicted.due() <= time.Now().UnixMilli() || !roomy && t.inMemory > 0 {
		return false
	}
	t.env.Budget.reopened(t)
	t.lane.Reopen()
	return true
}

// Repark parks a record again if a worker finds that it is not due, which happens when the host's
// clock is set back. It returns false if the record has to be written again instead. It takes the
// lane's lock.
func (t *Tier) Repark(r *kgo.Record, now time.Time) bool {
	t.lane.Lock()
	defer t.lane.Unlock()
	at := t.dueOf(r, t.readAt(r.Offset, now), now)
	switch {
	case at <= now.UnixMilli():
		return false
	case t.lane.Closing(): // the next owner reads it
	case t.retired.Load():
		t.keep(pack(r, at))
	default:
		t.admit(r, at)
	}
	return true
}

// Drop drops all waiting records. It is called when the lane is revoked.
func (t *Tier) Drop() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.dropEvicted()
	t.parked = nil
	t.env.Budget.giveBack(t.inMemoryBytes)
	t.forget(t.inMemory, t.inMemoryBytes)
}

func (t *Tier) dropEvicted() {
	t.evicted, t.starved = evictedIndex{}, false
	t.env.Budget.remove(t)
}

// Retire registers that the tier's topic was deleted. It returns the number of evicted records,
// which are lost. The tier goes on with the records in memory. Retire takes the lane's lock.
func (t *Tier) Retire() (lost int) {
	t.lane.Lock()
	defer t.lane.Unlock()
	t.retired.Store(true)
	lost = t.evicted.n
	t.dropEvicted()
	return lost
}

// Retired reports whether Retire was called. It needs no lock.
func (t *Tier) Retired() bool { return t.retired.Load() }

// Waiting returns the number of records that are not due yet, parked in memory or evicted.
func (t *Tier) Waiting() int { return len(t.parked) + t.evicted.n }

// Check returns an error if the headers of a record are not those of a retry copy in this tier. It
// needs no lock.
func (t *Tier) Check(m *headers.Meta, written, now time.Time) error {
	return m.CheckRetry(later(written, now), t.longestWait())
}

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
