package consumer

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// unitRecords is how many records of a source partition a worker takes at a time: enough that locks and slabs cost
// nothing per record, few enough that a slab stays in the first-level cache.
const unitRecords = 256

// feed is the intake of one physical partition of a lane: the source's or a tier's. The lane's lock guards it.
type feed struct {
	lane  *lane
	topic string
	delay time.Duration // of the tier; zero for the source
	sig   signals

	drained bool         // the tier is not configured: it is drained, and nothing goes into it
	retired atomic.Bool  // and its topic was deleted: it is neither read nor committed
	id      kadm.TopicID // of a tier's topic, under which its offsets count

	tracker     tracker
	committedAt time.Time // when the broker last took an offset
	epoch       int32     // leader epoch of the last record, sent with the commit (KIP-320)

	fetchErrors   fetchErrors  // why it is not
	busy          bool         // a worker has a unit of it; under OrderPartition it then has no other
	batches       fifo[batch]  // a source under OrderPartition
	ready         fifo[*item]  // single records that may run
	parked        dueHeap      // of a tier: not due yet, or no room among the ready ones
	timer         *time.Timer  // for the next of parked and away
	inMemory      int          // of a tier: records in memory that no worker took yet, due or not
	inMemoryBytes int64        // of those, in the parking budget
	evicted       evictedIndex // of a tier: records that gave up their bytes
	refetching    bool         // some of these are being fetched again
	starved       bool         // they would be, if there were room
	starvedOf     int64        // bytes of the least of them that is due soon and did not fit
	topicID       [16]byte     // of the topic, once something of it was read
	readMarks     []readMark   // of a tier: when what was read, in order
	queued        int          // records delivered that no worker took yet, parked ones not counted
	bytes         int64        // of those
	full          atomic.Bool  // its fetch should be paused; the gate acts on it
	paused        bool         // its fetch is paused; the gate's, like forgotten
	closed        bool
}

// batch is what one poll brought of a partition.
type batch struct {
	recs []*kgo.Record
	each int64 // bytes a record, on average
}

func (f *feed) isSource() bool { return f.delay == 0 }

func (f *feed) hasWork() bool {
	if f.busy && f.lane.c.cfg.Order == OrderPartition {
		return false
	}
	return f.batches.len() > 0 || f.ready.len() > 0
}

// cut takes the next unit.
func (f *feed) cut() *unit {
	u := &unit{feed: f}
	f.busy = true
	if f.ready.len() > 0 {
		u.item = f.ready.pop()
		u.key = u.item.hash
		if f.isSource() {
			f.leave(1, u.item.size)
		} else {
			f.release(1, u.item.size) // the budget has the bytes back in release
			if n := f.ready.len(); n == maxPromoted/2 || n == 0 {
				f.arm() // others may be due, and wait for room among the ready ones
			}
		}
		return u
	}
	b := f.batches.head()
	n := min(len(b.recs), unitRecords)
	u.recs = b.recs[:n:n]
	f.leave(n, b.each*int64(n))
	if b.recs = b.recs[n:]; len(b.recs) == 0 {
		f.batches.pop()
	}
	return u
}

// putBack takes back what of a unit did not run. On a lane that is given up it is dropped: the next owner reads it.
func (f *feed) putBack(u *unit) {
	f.busy = false
	rest := u.recs[u.ran:]
	if len(rest) == 0 || f.lane.state >= laneDraining {
		return
	}
	var size int64
	for _, r := range rest {
		size += recordSize(r)
	}
	f.batches.pushFront(batch{recs: rest, each: size / int64(len(rest))})
	f.enter(len(rest), size/int64(len(rest))*int64(len(rest)))
}

// enter and leave account for what waits in the queues, here and for the process.
func (f *feed) enter(n int, bytes int64) {
	f.queued += n
	f.bytes += bytes
	f.lane.c.inflightBytes.Add(bytes)
}

func (f *feed) leave(n int, bytes int64) { f.enter(-n, -bytes) }

// drop lets go of everything that waits.
func (f *feed) drop() {
	f.batches = fifo[batch]{}
	f.ready = fifo[*item]{}
	f.leave(f.queued, f.bytes)
	f.dropParked()
}

// isFull reports whether a source holds so much that its fetch should pause. Bytes are the process's: while half of
// MaxInFlightBytes is free a lane may use any of it, beyond that each has its share.
func (f *feed) isFull() bool {
	c := f.lane.c
	if f.queued >= c.cfg.MaxInFlight {
		return true
	}
	half := c.cfg.MaxInFlightBytes / 2
	return c.inflightBytes.Load() > half && f.bytes > c.share(half)
}

// mayResume reports whether a paused fetch should go on. It waits for half the room, so that pausing, which makes kgo
// throw away what it has buffered of the partition, stays rare.
func (f *feed) mayResume() bool {
	if !f.isSource() || !f.full.Load() {
		return false
	}
	if f.queued > f.lane.c.cfg.MaxInFlight/2 || f.queued > 0 && f.isFull() {
		return false
	}
	f.full.Store(false)
	return true
}

// offerSource takes what a poll brought of the source partition. It reports whether the fetch should pause.
func (f *feed) offerSource(recs []*kgo.Record) (pause bool) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || l.intake != intakeOpen {
		return false
	}
	// A position that was set back brings records again that are here already.
	for len(recs) > 0 && recs[0].Offset < f.tracker.next {
		recs = recs[1:]
	}
	if len(recs) == 0 {
		return false
	}
	var size int64
	end, markers := recs[len(recs)-1].Offset+1, false
	f.epoch = recs[len(recs)-1].LeaderEpoch // a marker's too: the floor passes it, and an older epoch ends before it
	for _, r := range recs {
		size += recordSize(r)
		markers = markers || r.Attrs.IsControl()
	}
	if markers {
		if recs, size = withoutMarkers(recs); len(recs) == 0 {
			f.tracker.skip(end)
			return false
		}
	}
	first, last := recs[0], recs[len(recs)-1]
	if last.Offset-first.Offset == int64(len(recs)-1) {
		f.tracker.deliverRange(first.Offset, last.Offset)
	} else {
		for _, r := range recs {
			f.tracker.deliver(r.Offset)
		}
	}
	f.tracker.skip(end)

	if l.c.cfg.Order == OrderPartition {
		each := size / int64(len(recs))
		f.batches.push(batch{recs: recs, each: each})
		f.enter(len(recs), each*int64(len(recs)))
	} else {
		items := make([]item, len(recs))
		for i, r := range recs {
			items[i] = item{rec: r, size: recordSize(r)}
			l.enqueue(f, &items[i])
		}
		f.enter(len(recs), size)
	}
	l.wakeLocked()
	if f.isFull() && !f.full.Load() {
		f.full.Store(true)
		return true
	}
	return false
}

// withoutMarkers takes out the markers with which transactions end. They come in the order of the log, so a marker says that all in front
// of it was read or will never be: the floor passes it, and with it the records of a transaction that was aborted.
func withoutMarkers(recs []*kgo.Record) (data []*kgo.Record, size int64) {
	data = slices.DeleteFunc(recs, func(r *kgo.Record) bool { return r.Attrs.IsControl() })
	for _, r := range data {
		size += recordSize(r)
	}
	return data, size
}

// recordSize is what a record keeps in memory, roughly.
func recordSize(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value) + 64
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value) + 40
	}
	return int64(n)
}
