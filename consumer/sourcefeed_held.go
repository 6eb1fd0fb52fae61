package consumer

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/consumer/internal/heldkeys"
)

// nextReady returns the index of the next record that is ready, -1 if none may start. Where a bound
// of HoldKeys is reached, that is a head or a follower; heads wait for the retry budget.
func (f *sourceFeed) nextReady() int {
	held := f.lane.held
	if held == nil {
		return f.feed.nextReady()
	}
	full, retriesWait := f.isHeldFull(), f.lane.guard.HoldsRetries()
	switch {
	case full && f.urgent == 0:
		return -1
	case !full && (f.urgent == 0 || !retriesWait):
		return f.feed.nextReady()
	}
	isolated := f.window.Suspects().IsIsolated()
	for i, it := range f.ready.All() {
		switch {
		case f.isBarred(it):
		case f.window.MayStart(it.offset()):
			return i
		case !isolated:
			return -1
		}
	}
	return -1
}

// begin begins a run of a record that is ready, for the guard.
func (f *sourceFeed) begin(it *item) (guard.Run, bool) {
	if it.again {
		return f.lane.guard.Retry(f.lane)
	}
	return f.lane.guard.Source(f.lane, false)
}

// isBarred reports whether a record that is ready waits for something else than a worker: at a
// bound of HoldKeys, or for the retry budget. In a hold of the guard a head may be a probe.
func (f *sourceFeed) isBarred(it *item) bool {
	g := f.lane.guard
	return it.again && g.HoldsRetries() && !g.Holds() || !it.isUrgent() && f.isHeldFull()
}

// waitsBehind reports whether a record of the batches waits behind another one of its key, or did
// so in an earlier process.
func (f *sourceFeed) waitsBehind(r *kgo.Record) bool {
	l := f.lane
	if r.Key == nil || len(l.keys) == 0 && !l.held.Left() {
		return false
	}
	_, busy := l.keys[hashOf(r.Key)]
	return busy || l.held.IsLeft(r.Offset)
}

// setAside takes records from the front of the batches that wait behind others. It reports whether
// one is left that may be cut. Under OrderPartition only held keys have a queue.
func (f *sourceFeed) setAside() bool {
	l := f.lane
	if l.held == nil {
		return f.batches.Len() > 0
	}
	if f.isHeldFull() {
		return false
	}
	for f.batches.Len() > 0 {
		b := f.batches.Head()
		r := b.recs[0]
		if !f.waitsBehind(r) {
			return true
		}
		it := f.itemOf(r, b.each)
		if b.recs = b.recs[1:]; len(b.recs) == 0 {
			f.batches.Pop()
		}
		l.enqueue(&f.feed, it)
	}
	return false
}

// itemOf makes a single record of one of a batch, which counted so many bytes.
func (f *sourceFeed) itemOf(r *kgo.Record, counted int64) *item {
	it := &item{rec: r, size: forward.RecordSize(r)}
	f.addQueued(0, it.size-counted)
	return it
}

// together returns how many of the first records go into one unit: those before the next one that
// waits behind another.
func (f *sourceFeed) together(recs []*kgo.Record) []*kgo.Record {
	if l := f.lane; l.held == nil || len(l.keys) == 0 && !l.held.Left() {
		return recs
	}
	if i := slices.IndexFunc(recs[1:], f.waitsBehind); i >= 0 {
		return recs[:1+i]
	}
	return recs
}

// extract takes all records of a key out of the batches.
func (f *sourceFeed) extract(key keyHash) (found []*item) {
	var left fifo.Queue[batch]
	for _, b := range f.batches.All() {
		from := 0
		for i, r := range b.recs {
			if r.Key == nil || hashOf(r.Key) != key {
				continue
			}
			it := f.itemOf(r, b.each)
			it.hash = key
			if found = append(found, it); i > from {
				left.Push(batch{recs: b.recs[from:i:i], each: b.each})
			}
			from = i + 1
		}
		if from < len(b.recs) {
			left.Push(batch{recs: b.recs[from:], each: b.each})
		}
	}
	if len(found) > 0 {
		f.batches = left
	}
	return found
}

// putProbeBack takes back the record of a failed probe that keeps its key. It reports false under
// other rules than those of HoldKeys.
func (f *sourceFeed) putProbeBack(r *kgo.Record) bool {
	l := f.lane
	if l.held == nil || r.Key == nil {
		return false
	}
	it := &item{rec: r, size: forward.RecordSize(r), hash: hashOf(r.Key), probed: l.guard.Failed()}
	l.keys[it.hash] = nil
	f.ready.Push(it)
	return true
}

// noneStarts reports whether all suspects that are not finished are heads which are not due, and
// records behind these: no process can have died of them.
func (f *sourceFeed) noneStarts(now time.Time) bool {
	l, suspect := f.lane, f.window.Suspects().Suspect
	if at, ok := l.held.Next(); ok && !now.Before(at) {
		return false
	}
	for key, q := range l.keys {
		if q != nil && !l.held.Has(heldkeys.Key(key)) && slices.ContainsFunc(q.All(), func(w waitingItem) bool {
			return w.item.parked == nil && w.item.offset() < suspect
		}) {
			return false
		}
	}
	return !slices.ContainsFunc(f.ready.All(), func(it *item) bool { return it.offset() < suspect }) &&
		!slices.ContainsFunc(f.failed, func(x failedRun) bool { return x.rec.Offset < suspect }) &&
		(f.batches.Len() == 0 || f.batches.Head().recs[0].Offset >= suspect)
}

// cutHeldItem completes a unit of a single record.
func (f *sourceFeed) cutHeldItem(u *unit) {
	it := u.item
	if !it.isUrgent() {
		return
	}
	f.urgent--
	if held := f.lane.held; it.dead {
		u.odd = &oddUnit{dead: held.dead[it.hash]}
	} else if it.again {
		u.odd = &oddUnit{again: held.Head(heldkeys.Key(it.hash))}
	}
}

// held returns how many records are held: they do not count for MaxInFlight.
func (f *sourceFeed) held() int {
	if f.lane.held == nil {
		return 0
	}
	return f.lane.held.Held()
}

// isHeldFull reports whether a bound of HoldKeys is reached.
func (f *sourceFeed) isHeldFull() bool { return f.lane.held != nil && f.lane.held.Full() != "" }

// heldEases reports whether every bound of HoldKeys is far enough for the fetch to go on.
func (f *sourceFeed) heldEases() bool { return f.lane.held == nil || f.lane.held.Eases() }
