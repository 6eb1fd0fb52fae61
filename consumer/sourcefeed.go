package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/forward"
)

// unitRecords is how many records of a source partition a worker takes at a time. They are enough
// that locks and slabs cost nothing per record, and few enough that a slab stays in the first-level
// cache.
const unitRecords = 256

// sourceFeed is the intake of a lane's source partition.
type sourceFeed struct {
	feed
	batches fifo.Queue[batch] // under OrderPartition
	queued  int               // records delivered that no worker took yet
	bytes   int64             // of those
}

// batch is what one poll brought of a partition.
type batch struct {
	recs []*kgo.Record
	each int64 // bytes a record, on average
}

func newSourceFeed(l *lane) *sourceFeed {
	return &sourceFeed{feed: feed{lane: l, fetch: fetch{topic: l.topic, partition: l.partition}, origin: l.newOrigin(l.topic, 0)}}
}

// offer takes what a poll brought of the partition. It reports whether the fetch should pause.
func (f *sourceFeed) offer(recs []*kgo.Record) (pause bool) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || l.intake != intakeOpen {
		return false
	}
	// A position that was set back brings records again that are here already.
	for len(recs) > 0 && recs[0].Offset < f.tracker.Next {
		recs = recs[1:]
	}
	if len(recs) == 0 {
		return false
	}
	var size int64
	end, markers := recs[len(recs)-1].Offset+1, false
	f.epoch = recs[len(recs)-1].LeaderEpoch // a marker's too: an older epoch ends before the floor
	for _, r := range recs {
		size += forward.RecordSize(r)
		markers = markers || r.Attrs.IsControl()
	}
	if markers {
		if recs, size = withoutMarkers(recs); len(recs) == 0 {
			f.tracker.Skip(end)
			return false
		}
	}
	first, last := recs[0], recs[len(recs)-1]
	if last.Offset-first.Offset == int64(len(recs)-1) {
		f.tracker.DeliverRange(first.Offset, last.Offset)
	} else {
		for _, r := range recs {
			f.tracker.Deliver(r.Offset)
		}
	}
	f.tracker.Skip(end)

	if l.c.cfg.Order == OrderPartition {
		each := size / int64(len(recs))
		f.batches.Push(batch{recs: recs, each: each})
		f.enter(len(recs), each*int64(len(recs)))
	} else {
		items := make([]item, len(recs))
		for i, r := range recs {
			items[i] = item{rec: r, size: forward.RecordSize(r)}
			l.enqueue(&f.feed, &items[i])
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

func (f *sourceFeed) hasWork() bool {
	return f.mayCut() && (f.batches.Len() > 0 || f.ready.Len() > 0)
}

// cut takes the next unit.
func (f *sourceFeed) cut() *unit {
	u := &unit{feed: &f.feed}
	f.busy = true
	if f.ready.Len() > 0 {
		u.item = f.ready.Pop()
		u.key = u.item.hash
		f.leave(1, u.item.size)
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

// putBack takes back what of a unit did not run. On a lane that is revoked it is dropped: the next
// owner reads it.
func (f *sourceFeed) putBack(u *unit) {
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
func (f *sourceFeed) enter(n int, bytes int64) {
	f.queued += n
	f.bytes += bytes
	f.lane.c.inflightBytes.Add(bytes)
}

func (f *sourceFeed) leave(n int, bytes int64) { f.enter(-n, -bytes) }

// drop lets go of everything that waits.
func (f *sourceFeed) drop() {
	f.batches = fifo.Queue[batch]{}
	f.ready = fifo.Queue[*item]{}
	f.leave(f.queued, f.bytes)
}

// withoutMarkers takes out the markers with which transactions end. They come in the order of the
// log, so a marker says that all in front of it was read or will never be: the floor passes it, and
// with it the records of a transaction that was aborted.
func withoutMarkers(recs []*kgo.Record) (data []*kgo.Record, size int64) {
	data = slices.DeleteFunc(recs, func(r *kgo.Record) bool { return r.Attrs.IsControl() })
	for _, r := range data {
		size += forward.RecordSize(r)
	}
	return data, size
}

// isFull reports whether the feed holds so much that its fetch should pause. Bytes are the
// process's: while half of MaxInFlightBytes is free a lane may use any of it, beyond that each has
// its share.
func (f *sourceFeed) isFull() bool {
	c := f.lane.c
	if f.queued >= c.cfg.MaxInFlight {
		return true
	}
	half := c.cfg.MaxInFlightBytes / 2
	return c.inflightBytes.Load() > half && f.bytes > c.share(half)
}

// mayResume reports whether a paused fetch should go on. It waits for half the room, so that
// pausing, which makes kgo throw away what it has buffered of the partition, stays rare.
func (f *sourceFeed) mayResume() bool {
	if !f.full.Load() {
		return false
	}
	if f.queued > f.lane.c.cfg.MaxInFlight/2 || f.queued > 0 && f.isFull() {
		return false
	}
	f.full.Store(false)
	return true
}
