package consumer

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// unitRecords is how many records of a source partition a worker takes at a time: enough that locks and slabs cost
// nothing per record, few enough that a slab stays in the first-level cache.
const unitRecords = 256

// feed is the intake of one physical partition of a lane: the source's or a tier's. The lane's lock guards it.
type feed struct {
	lane  *lane
	topic string
	delay time.Duration // of the tier; zero for the source

	origin *origin // of its attempts

	drained bool         // the tier is not configured: it is drained, and nothing goes into it
	retired atomic.Bool  // and its topic was deleted: it is neither read nor committed
	id      kadm.TopicID // of a tier's topic, under which its offsets count

	tracker     offsets.Tracker
	committedAt time.Time // when the broker last took an offset
	epoch       int32     // leader epoch of the last record, sent with the commit (KIP-320)

	fetchErrors   fetchErrors       // why it is not
	busy          bool              // a worker has a unit of it; under OrderPartition it then has no other
	batches       fifo.Queue[batch] // a source under OrderPartition
	ready         fifo.Queue[*item] // single records that may run
	parked        dueHeap           // of a tier: not due yet, or no room among the ready ones
	timer         *time.Timer       // for the next of parked and away
	inMemory      int               // of a tier: records in memory that no worker took yet, due or not
	inMemoryBytes int64             // of those, in the parking budget
	evicted       evictedIndex      // of a tier: records that gave up their bytes
	refetching    bool              // some of these are being fetched again
	starved       bool              // they would be, if there were room
	starvedOf     int64             // bytes of the least of them that is due soon and did not fit
	topicID       [16]byte          // of the topic, once something of it was read
	readMarks     []readMark        // of a tier: when what was read, in order
	queued        int               // records delivered that no worker took yet, parked ones not counted
	bytes         int64             // of those
	full          atomic.Bool       // its fetch should be paused; the gate acts on it
	paused        bool              // its fetch is paused; the gate's, like forgotten
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
	return f.batches.Len() > 0 || f.ready.Len() > 0
}

// cut takes the next unit.
func (f *feed) cut() *unit {
	u := &unit{feed: f}
	f.busy = true
	if f.ready.Len() > 0 {
		u.item = f.ready.Pop()
		u.key = u.item.hash
		if f.isSource() {
			f.leave(1, u.item.size)
		} else {
			f.release(1, u.item.size) // the budget has the bytes back in release
			if n := f.ready.Len(); n == maxPromoted/2 || n == 0 {
				f.arm() // others may be due, and wait for room among the ready ones
			}
		}
		return u
	}
	b := f.batches.Head()
	n := min(len(b.recs), unitRecords)
	u.recs = b.recs[:n:n]
	f.leave(n, b.each*int64(n))
	if b.recs = b.recs[n:]; len(b.recs) == 0 {
		f.batches.Pop()
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
		size += forward.RecordSize(r)
	}
	f.batches.PushFront(batch{recs: rest, each: size / int64(len(rest))})
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
	f.batches = fifo.Queue[batch]{}
	f.ready = fifo.Queue[*item]{}
	f.leave(f.queued, f.bytes)
	f.dropParked()
}

// queuedCount counts what was read and waits for nothing but a worker.
func (f *feed) queuedCount() int {
	if f.isSource() {
		return f.queued
	}
	return f.ready.Len()
}

// waiting counts what was read of a tier and waits for its time, in memory or not.
func (f *feed) waiting() int { return len(f.parked) + f.evicted.n }

// readTrouble notes that the fetch of a feed was refused.
func (f *feed) readTrouble(err error) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.fetchErrors.add(err, time.Now())
}

// Finish implements forward.Origin.
func (f *feed) Finish(offset int64) { f.tracker.Finish(offset) }

// join adds the feed to its lane, unless that is given up. It reports whether the feed is to be read; a lane that is not placed yet has it
// placed and read with its others.
func (f *feed) join() bool {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || l.reads(f.topic) {
		return false
	}
	l.extend(f)
	return l.positionsLoaded
}
