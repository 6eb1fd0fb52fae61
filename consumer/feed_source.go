package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
)

// offerSource takes what a poll brought of the source partition. It reports whether the fetch should pause.
func (f *feed) offerSource(recs []*kgo.Record) (pause bool) {
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
	f.epoch = recs[len(recs)-1].LeaderEpoch // a marker's too: the floor passes it, and an older epoch ends before it
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
		size += forward.RecordSize(r)
	}
	return data, size
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
