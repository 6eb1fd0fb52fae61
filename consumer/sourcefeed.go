package consumer

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// sourceFeed is the intake of a lane's source partition.
type sourceFeed struct {
	feed
	batches fifo.Queue[batch] // under OrderPartition
	queued  int               // delivered records that no worker took yet
	bytes   int64             // of the queued records
	// Records in front of the batches that failed as probes, in order. They are queued as well.
	failed   []failedRun
	heldRuns int64 // how many single records have run in holds
	followed int64 // the last round of probes in which followers ran
	inRound  int   // how many ran in that
	near     int   // how many ran since one far behind
	urgent   int   // records that are ready and waited as heads, or behind some
}

// unitRecords is the number of records of a source partition that a worker takes at a time. Locks
// and slabs are cheap per record then, and a slab takes the 4 KiB that the allocator has for it.
const unitRecords = 255

// batch holds the records of a partition from one poll. None that was delivered is missing between
// two of them: a unit finishes their whole range.
type batch struct {
	recs []*kgo.Record
	each int64 // average bytes of a record
}

func newSourceFeed(l *lane) *sourceFeed {
	f := &sourceFeed{feed: feed{lane: l, fetch: fetch{topic: l.topic, partition: l.partition}, origin: l.newOrigin(l.topic, 0)}}
	f.kind = f
	return f
}

func (f *sourceFeed) nextOffset() int64 {
	switch {
	case f.ready.Len() > 0:
		return (*f.ready.Head()).offset()
	case f.batches.Len() > 0:
		return f.batches.Head().recs[0].Offset
	}
	return -1
}

func (f *sourceFeed) waiting() (found []int64) {
	if !f.mayCut() {
		return nil
	}
	for _, it := range f.ready.All() {
		if !f.isBarred(it) {
			found = append(found, it.offset())
		}
	}
	if f.isHeldFull() {
		return found
	}
	for _, x := range f.failed {
		found = append(found, x.rec.Offset)
	}
	for _, b := range f.batches.All() {
		for _, r := range b.recs {
			found = append(found, r.Offset)
		}
	}
	return found
}

// mayRunWaiting implements kind. Under OrderPartition, one that may not run may be in front.
func (f *sourceFeed) mayRunWaiting() bool { return f.hasWork() }

func (f *sourceFeed) noneDue(now time.Time) bool { return f.lane.held != nil && f.noneStarts(now) }

func (f *sourceFeed) unclaim(*item) bool { return false }

// takePolled takes polled records of the partition. It reports whether the fetch should pause.
func (f *sourceFeed) takePolled(recs []*kgo.Record, end int64) (pause bool) {
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
	if f.window.Suspects().AreVoidedBy(recs[len(recs)-1].LeaderEpoch) {
		for _, r := range recs {
			f.window.Suspects().Read(r.Offset, r.LeaderEpoch)
		}
	}
	if held := l.held; held != nil && held.Left() {
		for _, r := range recs {
			held.Read(r.Offset, r.LeaderEpoch)
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
		f.addQueued(len(recs), each*int64(len(recs)))
	} else {
		items := make([]item, len(recs))
		for i, r := range recs {
			items[i] = item{rec: r, size: forward.RecordSize(r)}
			l.enqueue(&f.feed, &items[i])
		}
		f.addQueued(len(recs), size)
	}
	l.wakeLocked()
	if f.isFull() && !f.full.Load() {
		f.full.Store(true)
		return true
	}
	return false
}

func (f *sourceFeed) hasWork() bool {
	switch {
	case !f.mayCut():
		return false
	case f.ready.Len() > 0 && f.nextReady() >= 0:
		return true
	}
	return f.hasRecords()
}

// hasRecords reports whether a record of the batches may start, or one in front of them.
func (f *sourceFeed) hasRecords() bool {
	if len(f.failed) > 0 {
		return f.window.MayStart(f.failed[0].rec.Offset)
	}
	return f.mayCutNext()
}

// mayCutNext reports whether the first record of the batches may start.
func (f *sourceFeed) mayCutNext() bool {
	return f.setAside() && f.window.MayStart(f.batches.Head().recs[0].Offset)
}

// cut returns the next unit, nil if none may start. That can be so although hasWork found one a
// moment ago, since commits may rest until a time, and the guard changes without the lane's lock.
func (f *sourceFeed) cut() *unit {
	if !f.mayCut() {
		return nil
	}
	for f.ready.Len() > 0 {
		i := f.nextReady()
		if i < 0 {
			break
		}
		it := f.ready.All()[i]
		if run, ok := f.begin(it); ok {
			return f.cutItem(i, run)
		}
		if !it.again || !f.lane.guard.HoldsRetries() {
			return nil
		}
	}
	if !f.hasRecords() {
		return nil
	}
	f.putFailedBack()
	return f.cutRecords(unitRecords)
}

// cutItem makes a unit of a single record that is ready.
func (f *sourceFeed) cutItem(i int, run guard.Run) *unit {
	u := &unit{feed: &f.feed, run: run, item: f.popFrom(&f.ready, i)}
	f.busy = true
	u.key = u.item.hash
	u.setSpan(u.item.offset(), u.item.offset())
	f.removeQueued(1, u.item.size)
	f.cutHeldItem(u)
	return u
}

// cutRecords makes a unit of the first records of the batches, of which the first may start.
func (f *sourceFeed) cutRecords(most int) *unit {
	b := f.batches.Head()
	n := f.window.Prefix(f.together(b.recs[:min(len(b.recs), most)]))
	u := &unit{feed: &f.feed, recs: b.recs[:n:n]}
	f.busy = true
	u.setSpan(u.recs[0].Offset, u.recs[n-1].Offset)
	f.window.Begin(n, u.recs[n-1].Offset)
	f.removeQueued(n, b.each*int64(n))
	if b.recs = b.recs[n:]; len(b.recs) == 0 {
		f.batches.Pop()
	}
	return u
}

// putBack takes back the records of a unit that did not run, or stay. A draining lane drops them:
// the next owner reads them.
func (f *sourceFeed) putBack(u *unit) {
	if f.lane.state >= laneDraining {
		return
	}
	if u.parts().follows != nil {
		f.putFollowerBack(u)
		return
	}
	rest := u.recs[u.ran:]
	if len(rest) == 0 {
		return
	}
	var size int64
	for _, r := range rest {
		size += forward.RecordSize(r)
	}
	f.addQueued(len(rest), size)
	if u.run.Probe() && f.putProbeBack(rest[0]) {
		return
	}
	if u.run.Probe() {
		u.failure.rec, u.failure.round = rest[0], f.lane.guard.Failed()
		f.failed = slices.Insert(f.failed, min(u.place, len(f.failed)), u.failure)
		return
	}
	f.putFailedBack()
	f.pushFront(rest, size)
}

// putItemBack takes back a single record that stays. One that failed as a probe goes behind the
// others that are ready, and keeps its key. It has failed in the round in which it ended: one that
// takes longer than a round would else be the next one always.
func (f *sourceFeed) putItemBack(u *unit) {
	if u.parts().follows != nil {
		f.putFollowerBack(u)
		return
	}
	f.addQueued(1, u.item.size)
	if u.item.isUrgent() {
		f.urgent++
	}
	if !u.run.Probe() {
		f.ready.PushFront(u.item)
		return
	}
	u.item.probed = f.lane.guard.Failed()
	f.ready.Push(u.item)
}

// putFollowerBack ends the run of a follower. One that failed as a probe waits where it was.
// Otherwise it leaves the queue, and those in front run again first. These runs are no probes, so a
// record that fails for good goes to its tier.
func (f *sourceFeed) putFollowerBack(u *unit) {
	if u.stays {
		f.addQueued(1, u.item.size)
		u.item.probed = f.lane.guard.Failed()
		f.ready.Push(u.parts().follows)
		return
	}
	q := f.lane.keys[u.parts().follows.hash]
	q.Remove(slices.IndexFunc(q.All(), func(w waitingItem) bool { return w.item == u.item }))
	f.lane.behindOthers--
	f.ready.PushFront(u.parts().follows)
}

// putFailedBack puts the records that failed as probes in front of the batches again. One between
// them may have ended in a copy that is not acknowledged yet, so each row of offsets is a batch.
func (f *sourceFeed) putFailedBack() {
	for end := len(f.failed); end > 0; {
		var recs []*kgo.Record
		var size int64
		first := end - 1
		for first > 0 && f.failed[first-1].rec.Offset == f.failed[first].rec.Offset-1 {
			first--
		}
		for _, x := range f.failed[first:end] {
			recs = append(recs, x.rec)
			size += forward.RecordSize(x.rec)
		}
		f.pushFront(recs, size)
		end = first
	}
	f.failed = nil
}

// pushFront puts queued records in front of the batches. Only whole bytes of each are counted from
// here on.
func (f *sourceFeed) pushFront(recs []*kgo.Record, size int64) {
	n := int64(len(recs))
	f.batches.PushFront(batch{recs: recs, each: size / n})
	f.removeQueued(0, size%n)
}

// addQueued and removeQueued count queued records and bytes, in this feed and for the process.
func (f *sourceFeed) addQueued(n int, bytes int64) {
	f.queued += n
	f.bytes += bytes
	f.lane.c.inflightBytes.Add(bytes)
}

func (f *sourceFeed) removeQueued(n int, bytes int64) { f.addQueued(-n, -bytes) }

// drop drops all queued records.
func (f *sourceFeed) drop() {
	f.batches, f.failed, f.ready, f.urgent = fifo.Queue[batch]{}, nil, fifo.Queue[*item]{}, 0
	f.removeQueued(f.queued, f.bytes)
}

// isFull reports whether the feed holds so much that its fetch should pause. The budget for bytes
// is the process's. Up to half of MaxInFlightBytes is first come, first served; the other half is
// divided equally among the lanes.
func (f *sourceFeed) isFull() bool {
	c := f.lane.c
	half := c.cfg.MaxInFlightBytes / 2
	return f.isHeldFull() || f.queued-f.held() >= c.cfg.MaxInFlight || c.inflightBytes.Load() > half && f.bytes > c.share(half)
}

// mayResume reports whether a paused fetch should resume. It waits until half the room is free, so
// that pauses stay rare: each makes kgo drop the records that it has buffered of the partition.
func (f *sourceFeed) mayResume() bool {
	if !f.full.Load() || !f.heldEases() || f.queued-f.held() > f.lane.c.cfg.MaxInFlight/2 || f.queued > 0 && f.isFull() {
		return false
	}
	f.full.Store(false)
	return true
}

// pushFirst makes a record ready that waited longer than all others: a head that is due, or a
// follower that is free.
func (f *sourceFeed) pushFirst(it *item) {
	f.urgent++
	f.ready.PushFront(it)
}

// dueHeads returns how many heads are due and do not run.
func (f *sourceFeed) dueHeads() (n int) {
	if f.urgent > 0 {
		for _, it := range f.ready.All() {
			if it.again {
				n++
			}
		}
	}
	return n
}
