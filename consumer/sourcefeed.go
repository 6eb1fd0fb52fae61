package consumer

import (
	"slices"

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
	switch {
	case !f.mayCut():
		return false
	case len(f.failed) > 0:
		return f.grant.allows(f.failed[0].rec.Offset)
	case f.batches.Len() > 0:
		return f.mayCutNext()
	}
	return f.nextReady() >= 0
}

// mayCutNext reports whether the first record of the batches may start.
func (f *sourceFeed) mayCutNext() bool {
	return f.batches.Len() > 0 && f.grant.allows(f.batches.Head().recs[0].Offset)
}

// cut returns the next unit, nil if none may start. That can be so although hasWork found one a
// moment ago, since a grant may rest until a time, and the guard changes without the lane's lock.
func (f *sourceFeed) cut() *unit {
	if !f.hasWork() {
		return nil
	}
	if f.ready.Len() > 0 {
		i := f.nextReady()
		if i < 0 {
			return nil
		}
		run, ok := f.lane.guard.Source(f.lane)
		if !ok {
			return nil
		}
		return f.cutItem(i, run)
	}
	f.putFailedBack()
	return f.cutRecords(unitRecords)
}

// cutItem makes a unit of a single record that is ready.
func (f *sourceFeed) cutItem(i int, run guard.Run) *unit {
	u := &unit{feed: &f.feed, run: run, item: f.popFrom(&f.ready, i), round: f.lane.guard.Round()}
	f.busy = true
	u.key = u.item.hash
	u.is(u.item.offset(), u.item.offset())
	f.leave(1, u.item.size)
	return u
}

// cutRecords makes a unit of the first records of the batches, of which the first may start.
func (f *sourceFeed) cutRecords(most int) *unit {
	b := f.batches.Head()
	n := f.grant.prefix(b.recs[:min(len(b.recs), most)])
	u := &unit{feed: &f.feed, recs: b.recs[:n:n]}
	f.busy = true
	u.is(u.recs[0].Offset, u.recs[n-1].Offset)
	f.grant.begin(n, u.recs[n-1].Offset)
	f.leave(n, b.each*int64(n))
	if b.recs = b.recs[n:]; len(b.recs) == 0 {
		f.batches.Pop()
	}
	return u
}

// couldProbe reports whether cutHeld would find a record.
func (f *sourceFeed) couldProbe(round int64) bool {
	if f.lane.c.cfg.Order != OrderPartition {
		return f.nextHeld(round) >= 0
	}
	return f.mayCut() && (f.nextFailed(round) >= 0 || f.mayCutNext())
}

// cutHeld returns the next record while the topic is held, nil if none may start. Package guard
// says which one that is.
func (f *sourceFeed) cutHeld() (u *unit) {
	l, round := f.lane, f.lane.guard.Round()
	next, again := -1, -1
	if l.c.cfg.Order != OrderPartition {
		next = f.nextHeld(round)
	} else {
		again = f.nextFailed(round)
	}
	if next < 0 && again < 0 && !f.mayCutNext() {
		return nil
	}
	run, ok := l.guard.Source(l)
	switch {
	case !ok:
		return nil
	case next >= 0:
		f.heldRuns++
		return f.cutItem(next, run)
	case !run.Probe():
		f.putFailedBack()
		u = f.cutRecords(1)
	case again >= 0:
		u = f.cutFailed(again)
	default:
		u = f.cutRecords(1)
		u.place = len(f.failed)
	}
	u.run, u.round = run, round
	return u
}

// nextFailed returns the index of the next record that runs again of those that failed as probes,
// -1 if none may: one that has not run in this round. The first one goes first. The others, that
// which ran longest ago first, run again once there is none that no probe has run: the first one
// may fail for good, and no other one come for hours.
func (f *sourceFeed) nextFailed(round int64) int {
	if len(f.failed) == 0 {
		return -1
	}
	if f.failed[0].round < round && f.grant.allows(f.failed[0].rec.Offset) {
		return 0
	}
	if f.batches.Len() > 0 {
		return -1
	}
	next := -1
	for i, x := range f.failed[1:] {
		if x.round < round && f.grant.granted(x.rec.Offset) {
			next, round = i+1, x.round
		}
	}
	return next
}

// cutFailed makes a unit of a record that failed as a probe.
func (f *sourceFeed) cutFailed(i int) *unit {
	rec := f.failed[i].rec
	f.failed = slices.Delete(f.failed, i, i+1)
	u := &unit{feed: &f.feed, recs: []*kgo.Record{rec}, place: i}
	f.busy = true
	u.is(rec.Offset, rec.Offset)
	f.leave(1, forward.RecordSize(rec))
	return u
}

// nextHeld returns the index of the next record that is ready while the topic is held, -1 if none
// may start: one that has not run in this round of probes. The first one and the last one take
// turns, since those in front may all be of one tenant.
func (f *sourceFeed) nextHeld(round int64) int {
	all := f.ready.All()
	if f.heldRuns%2 == 1 {
		for i, it := range slices.Backward(all) {
			if it.probed < round && f.grant.granted(it.offset()) {
				return i
			}
		}
	}
	i := slices.IndexFunc(all, func(it *item) bool { return it.probed < round })
	if i >= 0 && !f.grant.allows(all[i].offset()) {
		return -1
	}
	return i
}

// putBack takes back the records of a unit that did not run, or stay. A draining lane drops them:
// the next owner reads them.
func (f *sourceFeed) putBack(u *unit) {
	rest := u.recs[u.ran:]
	if len(rest) == 0 || f.lane.state >= laneDraining {
		return
	}
	var size int64
	for _, r := range rest {
		size += forward.RecordSize(r)
	}
	f.enter(len(rest), size)
	if u.stays && u.run.Probe() {
		u.failure.round = u.round
		f.failed = slices.Insert(f.failed, min(u.place, len(f.failed)), u.failure)
		return
	}
	before := f.takeFront(u.place)
	f.putFailedBack()
	f.pushFront(rest, size)
	f.failed = before
	f.putFailedBack()
}

// takeFront takes out so many of the first records that failed as probes.
func (f *sourceFeed) takeFront(n int) (all []failedRun) {
	n = min(n, len(f.failed))
	all, f.failed = f.failed[:n:n], f.failed[n:]
	return all
}

// putItemBack takes back a single record that stays. One that failed as a probe goes behind the
// others that are ready, and keeps its key.
func (f *sourceFeed) putItemBack(u *unit) {
	f.enter(1, u.item.size)
	if !u.run.Probe() {
		f.ready.PushFront(u.item)
		return
	}
	u.item.probed = u.round
	f.ready.Push(u.item)
}

// putFailedBack puts the records that failed as probes in front of the batches again.
func (f *sourceFeed) putFailedBack() {
	if len(f.failed) == 0 {
		return
	}
	var recs []*kgo.Record
	var size int64
	for _, x := range f.failed {
		recs = append(recs, x.rec)
		size += forward.RecordSize(x.rec)
	}
	f.failed = nil
	f.pushFront(recs, size)
}

// pushFront puts queued records in front of the batches. Only whole bytes of each are counted from
// here on.
func (f *sourceFeed) pushFront(recs []*kgo.Record, size int64) {
	n := int64(len(recs))
	f.batches.PushFront(batch{recs: recs, each: size / n})
	f.leave(0, size%n)
}

// givesWay reports whether the record of a failed probe goes to its tier, so that others can be
// read: the room is full of records that failed as probes, and none was good for MaxOutage.
func (f *sourceFeed) givesWay(u *unit) bool {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	if !f.full.Load() || !f.lane.guard.Outlasts() || len(f.lane.siblings.Tiers) == 0 || u.item == nil && u.place > 0 {
		return false
	}
	return f.batches.Len() == 0 && !slices.ContainsFunc(f.ready.All(), func(it *item) bool { return it.probed == 0 })
}

// takeFailed takes out so many of the first records that failed as probes. A draining lane has
// none.
func (f *sourceFeed) takeFailed(n int) (all []failedRun) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	all = f.takeFront(n)
	for _, x := range all {
		f.leave(1, forward.RecordSize(x.rec))
	}
	return all
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
	f.batches, f.failed, f.ready = fifo.Queue[batch]{}, nil, fifo.Queue[*item]{}
	f.leave(f.queued, f.bytes)
}

// isFull reports whether the feed holds so much that its fetch should pause. The budget for bytes
// is the process's. Up to half of MaxInFlightBytes is first come, first served; the other half is
// divided equally among the lanes.
func (f *sourceFeed) isFull() bool {
	c := f.lane.c
	half := c.cfg.MaxInFlightBytes / 2
	return f.queued >= c.cfg.MaxInFlight || c.inflightBytes.Load() > half && f.bytes > c.share(half)
}

// mayResume reports whether a paused fetch should resume. It waits until half the room is free, so
// that pauses stay rare: each makes kgo drop the records that it has buffered of the partition.
func (f *sourceFeed) mayResume() bool {
	if !f.full.Load() || f.queued > f.lane.c.cfg.MaxInFlight/2 || f.queued > 0 && f.isFull() {
		return false
	}
	f.full.Store(false)
	return true
}
