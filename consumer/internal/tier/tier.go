package tier

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Lane is what a tier needs of the lane that owns it. Its lock guards the tier. The methods are
// called with it held, except where they say otherwise.
type Lane interface {
	sync.Locker
	// Closing reports whether the lane is revoked: nothing becomes ready any more.
	Closing() bool
	// Enqueue takes a record that is due: it is ready, or waits for its key.
	Enqueue(*Item)
	// Ready returns how many records of the tier wait for nothing but a worker.
	Ready() int
	// Wake calls for workers if there is work.
	Wake()
	// Reopen notes that the fetch of the partition, for which Admit found no room, may go on.
	Reopen()
	// OutOfLog is called, without the lock, when the partition's log ends before a record that was
	// read of it: the log is another one.
	OutOfLog()
	// Context ends when the lane is gone. It is called with the lock or without.
	Context() context.Context
}

// Env is what a process gives to its tiers. It is not changed once a tier has it.
type Env struct {
	Budget *Budget
	// MaxDue bounds the due records of a tier that wait in memory for a worker or for their key.
	MaxDue int
	// Fetch reads committed records of a partition from an offset on: about so many bytes. It
	// returns the offset behind what it read, and ErrOutOfLog if the log ends before from.
	Fetch func(ctx context.Context, p Partition, from, bytes int64) (got []*kgo.Record, next int64, err error)
	// Retention is how long a tier's topic keeps a record, negative for ever. It may change.
	Retention func(topic string, delay time.Duration) time.Duration
	// Expired is told, without a lock, how many parked records the log of a partition has no more.
	Expired func(topic string, partition int32, n int64)
	// Go runs a goroutine that ends soon after the lane's context.
	Go       func(func())
	Throttle *logthrottle.Throttle
}

// Config describes a retry partition.
type Config struct {
	Topic     string
	Partition int32
	Delay     time.Duration
	// Wait is how long an ordinary failure waits in the tier at most, MaxWait how long one that
	// asks for a time of its own.
	Wait, MaxWait time.Duration
	Provision     retrytopics.Spec
	Log           *slog.Logger
}

// Partition names a partition for a fetch.
type Partition struct {
	Topic     string
	ID        [16]byte // of the topic; zero if no broker told it, before Kafka 2.8
	Partition int32
}

// Tier holds the records of one retry partition that wait. See the package's comment for its lock.
type Tier struct {
	env     *Env
	lane    Lane
	cfg     Config
	tracker *offsets.Tracker // of the partition: a record that is lost is finished

	id            [16]byte    // of the topic that was read last
	retired       atomic.Bool // the topic was deleted: nothing is read of it any more
	parked        dueHeap
	evicted       evictedIndex
	timer         *time.Timer // for the next of parked and evicted
	inMemory      int         // records in memory that no worker took yet, due or not
	inMemoryBytes int64       // of those, in the budget
	refetching    bool        // some of the evicted records are being fetched again
	starved       bool        // they would be, if there were room
	starvedOf     int64       // size of the smallest of them that is due soon and found no room
	readMarks     []readMark  // when what was read, in order
}

// New makes the tier of a partition. Records that are gone when they are fetched again are finished
// in the tracker, which the lane's lock guards.
func New(env *Env, lane Lane, cfg Config, tracker *offsets.Tracker) *Tier {
	return &Tier{env: env, lane: lane, cfg: cfg, tracker: tracker}
}

// Read notes that the records from an offset on are read now, of the topic with that id.
func (t *Tier) Read(id [16]byte, from int64, now time.Time) {
	t.id = id
	t.markRead(from, now)
}

// Admit takes a record that was just read. It reports whether the record is overdue and found no
// room: then what follows it in the log can as well wait on the broker.
func (t *Tier) Admit(r *kgo.Record, now time.Time) (refused bool) {
	due := t.dueOf(r, now, now)
	return !t.admit(r, due) && due <= now.UnixMilli()
}

// admit keeps a copy of a record, or only notes when it is due. A record that is due before all
// that the tier holds is its next one, for which there is always room.
func (t *Tier) admit(r *kgo.Record, due int64) (kept bool) {
	if size := packedSize(packedLen(r)); !t.isNext(due) && !t.env.Budget.admits(due, size) {
		t.evicted.add(r.Offset, due, size)
		t.env.Budget.evictedBytes.Add(size)
		return false
	}
	t.keep(pack(r, due))
	return true
}

// isNext reports whether a record due at that time would be the tier's next one.
func (t *Tier) isNext(due int64) bool {
	return t.dueCount() == 0 && (len(t.parked) == 0 || due < t.parked[0].due)
}

// keep takes a record into the heap and the budget.
func (t *Tier) keep(p packedRecord) {
	if t.inMemory == 0 {
		t.env.Budget.hold(t)
	}
	t.env.Budget.take(p.size())
	t.inMemory++
	t.inMemoryBytes += p.size()
	t.parked.push(p)
}

// forget takes records off the tier's books. The budget has their bytes back when they are no
// longer used.
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

// AwaitRoom has [Lane.Reopen] called when the fetch of the partition may go on.
func (t *Tier) AwaitRoom() { t.env.Budget.pause(t) }

// reopen reports whether a fetch that awaited room may go on. It takes the lane's lock.
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

// Repark parks a record again that a worker found not to be due, which happens when the host's
// clock is set. It reports false if the record has to be written again instead. It takes the lane's
// lock.
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

// Drop lets go of all that waits: the lane is revoked.
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

// Retire has the tier go on without its topic, which was deleted. It returns how many records are
// gone with it: those that were evicted. It takes the lane's lock.
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

// Waiting counts the records that were read and wait for their time, in memory or not.
func (t *Tier) Waiting() int { return len(t.parked) + t.evicted.n }

// Check reports what is wrong with the headers of a record of the tier. It needs no lock.
func (t *Tier) Check(m *headers.Meta, written, now time.Time) error {
	return m.CheckRetry(later(written, now), t.longestWait())
}
