package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/forward"
)

// sourceFeed is the intake of a lane's source partition.
type sourceFeed struct {
	feed
	batches fifo.Queue[batch] // under OrderPartition
	queued  int               // delivered records that no worker took yet
	bytes   int64             // of the queued records
	// Records in front of the batches that failed as probes. They stay in order, and the next probe
	// takes a later one.
	failed      []*kgo.Record
	failedBytes int64
	failedTo    int64 // the highest offset that failed as a probe, and one
}

// unitRecords is the number of records of a source partition that a worker takes at a time. It
// makes locks and slabs cheap per record, and keeps a slab within the first-level cache.
const unitRecords = 256

// batch holds the records of a partition from one poll.
type batch struct {
	recs []*kgo.Record
	each int64 // average bytes of a record
}

func newSourceFeed(l *lane) *sourceFeed {
	return &sourceFeed{feed: feed{lane: l, fetch: fetch{topic: l.topic, partition: l.partition}, origin: l.newOrigin(l.topic, 0)}}
}

// offer takes polled records of the partition. It reports whether the fetch should pause.
func (f *sourceFeed) offer(recs []*kgo.Record, end int64) (pause bool) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || l.intake != intakeOpen {
		return false
	}
	f.end = end
	// After a position moved back, kgo delivers some records again.
	for len(recs) > 0 && recs[0].Offset < f.tracker.Next {
		recs = recs[1:]
	}
	if len(recs) == 0 {
		return false
	}
	var size int64
	end, markers := recs[len(recs)-1].Offset+1, false
	// also of a marker: an older epoch ends before the floor
	f.read(recs[len(recs)-1].LeaderEpoch)
	if f.grant.isVoidedBy(recs[len(recs)-1]) {
		for _, r := range recs {
			f.grant.read(r)
		}
	}
	if f.tracker.Restored() {
		recs = slices.DeleteFunc(recs, func(r *kgo.Record) bool { return f.tracker.FinishedBefore(r.Offset, r.LeaderEpoch) })
	}
	for _, r := range recs {
		size += forward.RecordSize(r)
		markers = markers || r.Attrs.IsControl()
	}
	if markers {
		recs, size = withoutMarkers(recs)
	}
	if len(recs) == 0 {
		f.tracker.Skip(end)
		return false
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
	if !f.mayCut() {
		return false
	}
	if f.batches.Len() == 0 && len(f.failed) == 0 {
		return f.nextReady() >= 0
	}
	return f.mayCutFailed() || f.mayCutNext()
}

// mayCutNext reports whether the first record of the batches may start.
func (f *sourceFeed) mayCutNext() bool {
	return f.batches.Len() > 0 && f.grant.allows(f.batches.Head().recs[0].Offset)
}

// mayCutFailed reports whether the first of the records that failed as probes may start.
func (f *sourceFeed) mayCutFailed() bool {
	return len(f.failed) > 0 && f.grant.allows(f.failed[0].Offset)
}

// hasUnprobed reports whether the feed has work, and a record that is a sample may start. The
// source is the better sample, but only once: else a record of it that fails for good would hide
// the retry topics.
func (f *sourceFeed) hasUnprobed() bool {
	if !f.hasWork() {
		return false
	}
	at := f.sample()
	return at >= 0 && f.grant.allows(at)
}

// sample returns the offset of the first record that waits, neither failed as a probe before nor is
// a leftover; -1 if there is none.
func (f *sourceFeed) sample() int64 {
	if i := slices.IndexFunc(f.ready.All(), f.isSample); i >= 0 {
		return f.ready.All()[i].offset()
	}
	for _, b := range f.batches.All() {
		for _, r := range b.recs {
			if r.Offset >= f.failedTo && !f.tracker.IsLeftover(r.Offset) {
				return r.Offset
			}
		}
	}
	return -1
}

// setAside puts the records in front of one with those that failed as probes.
func (f *sourceFeed) setAside(sample int64) {
	for f.batches.Head().recs[0].Offset < sample {
		b := f.batches.Head()
		n := slices.IndexFunc(b.recs, func(r *kgo.Record) bool { return r.Offset >= sample })
		if n < 0 {
			n = len(b.recs)
		}
		f.failed = append(f.failed, b.recs[:n]...)
		f.failedBytes += b.each * int64(n)
		if b.recs = b.recs[n:]; len(b.recs) == 0 {
			f.batches.Pop()
		}
	}
}

// cut returns the next unit, nil if none may start. That can be so although hasWork found one a
// moment ago, since a grant may rest until a time. With a permit it has one record.
func (f *sourceFeed) cut(permit breaker.Permit) *unit {
	if !f.hasWork() {
		return nil
	}
	u := &unit{feed: &f.feed, permit: permit}
	sampled := permit.Probe() && !f.grant.isIsolated() && f.hasUnprobed()
	if f.ready.Len() > 0 {
		i := f.nextReady()
		if sampled {
			i = slices.IndexFunc(f.ready.All(), f.isSample)
		}
		if i < 0 {
			return nil
		}
		f.busy = true
		u.item = f.popFrom(&f.ready, i)
		u.key, u.repeated = u.item.hash, u.item.probed
		u.is(u.item.offset(), u.item.offset())
		f.leave(1, u.item.size)
		return u
	}
	f.busy = true
	// Suspects run as a commit has named them: before those in front, or behind them.
	switch {
	case sampled:
		f.setAside(f.sample())
	case !permit.Probe() && !f.grant.isIsolated(), !f.mayCutNext(), f.grant.isIsolated() && f.mayCutFailed():
		f.putFailedBack()
	}
	b := f.batches.Head()
	n := f.grant.prefix(b.recs[:min(len(b.recs), unitRecords)])
	if permit.OK() {
		n = 1
	} else if f.tracker.IsLeftover(b.recs[0].Offset) {
		// The breaker counts the others.
		if i := slices.IndexFunc(b.recs[:n], func(r *kgo.Record) bool { return !f.tracker.IsLeftover(r.Offset) }); i > 0 {
			n = i
		}
	}
	u.recs = b.recs[:n:n]
	u.repeated = u.recs[0].Offset < f.failedTo
	u.is(u.recs[0].Offset, u.recs[n-1].Offset)
	f.grant.begin(n, u.recs[n-1].Offset)
	f.leave(n, b.each*int64(n))
	if b.recs = b.recs[n:]; len(b.recs) == 0 {
		f.batches.Pop()
	}
	return u
}

// putBack takes back the records of a unit that did not run. A draining lane drops them: the next
// owner reads them.
func (f *sourceFeed) putBack(u *unit) {
	rest := u.recs[u.ran:]
	if len(rest) == 0 || f.lane.state >= laneDraining {
		return
	}
	var size int64
	for _, r := range rest {
		size += forward.RecordSize(r)
	}
	if u.stays && u.permit.Probe() {
		f.failed = append(f.failed, rest...)
		f.failedTo = max(f.failedTo, rest[0].Offset+1)
		f.failedBytes += size
		f.enter(len(rest), size)
		return
	}
	f.batches.PushFront(batch{recs: rest, each: size / int64(len(rest))})
	f.enter(len(rest), size/int64(len(rest))*int64(len(rest)))
}

// putFailedBack puts the records that failed as probes in front of the batches again.
func (f *sourceFeed) putFailedBack() {
	n := int64(len(f.failed))
	if n == 0 {
		return
	}
	f.batches.PushFront(batch{recs: f.failed, each: f.failedBytes / n})
	f.leave(0, f.failedBytes%n)
	f.failed, f.failedBytes = nil, 0
}

// enter and leave count queued records and their bytes, in this feed and for the process.
func (f *sourceFeed) enter(n int, bytes int64) {
	f.queued += n
	f.bytes += bytes
	f.lane.c.inflightBytes.Add(bytes)
}

func (f *sourceFeed) leave(n int, bytes int64) { f.enter(-n, -bytes) }

// drop drops all queued records.
func (f *sourceFeed) drop() {
	f.batches = fifo.Queue[batch]{}
	f.failed, f.failedBytes = nil, 0
	f.ready = fifo.Queue[*item]{}
	f.leave(f.queued, f.bytes)
}

// withoutMarkers removes the markers that end transactions. Markers come in log order: everything
// below a marker was read, or will never be delivered. So the floor passes a marker, and with it
// the records of an aborted transaction.
func withoutMarkers(recs []*kgo.Record) (data []*kgo.Record, size int64) {
	data = slices.DeleteFunc(recs, func(r *kgo.Record) bool { return r.Attrs.IsControl() })
	for _, r := range data {
		size += forward.RecordSize(r)
	}
	return data, size
}

// isFull reports whether the feed holds so much that its fetch should pause. The budget for bytes
// is the process's. Up to half of MaxInFlightBytes is first come, first served; the other half is
// divided equally among the lanes.
func (f *sourceFeed) isFull() bool {
	c := f.lane.c
	if f.queued >= c.cfg.MaxInFlight {
		return true
	}
	half := c.cfg.MaxInFlightBytes / 2
	return c.inflightBytes.Load() > half && f.bytes > c.share(half)
}

// mayResume reports whether a paused fetch should resume. It waits until half the room is free, so
// that pauses stay rare: each makes kgo drop the records that it has buffered of the partition.
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
