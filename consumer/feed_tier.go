package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// offerTier takes what a poll brought of a retry partition: records of other groups are passed over, the others are parked. It
// reports whether the fetch should pause: where what comes is overdue already and there is no room, it can as well wait on the
// broker.
func (f *feed) offerTier(id [16]byte, recs []*kgo.Record) (pause bool) {
	foreign, pause := f.admitAll(id, recs)
	if foreign > 0 {
		f.lane.c.warnShared(f.topic)
	}
	return pause
}

func (f *feed) admitAll(id [16]byte, recs []*kgo.Record) (foreign int, pause bool) {
	l := f.lane
	now := time.Now()
	refused := false
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || f.retired.Load() {
		return 0, false
	}
	f.topicID = id
	f.markRead(f.tracker.Next, now)
	for _, r := range recs {
		if r.Attrs.IsControl() { // the end of a transaction, see withoutMarkers
			f.tracker.Skip(r.Offset + 1)
			f.epoch = r.LeaderEpoch
			continue
		}
		if !f.tracker.Deliver(r.Offset) {
			continue
		}
		f.epoch = r.LeaderEpoch
		// One without a group is broken, not another group's. Whatever else is broken is for the group that it names.
		if group, _, _ := headers.Peek(r.Headers); len(group) > 0 && !l.c.groups.has(group) {
			f.tracker.Finish(r.Offset)
			foreign++
			continue
		}
		due := f.dueOf(r, now, now)
		refused = !f.admit(r, due) && due <= now.UnixMilli()
	}
	f.promote()
	if refused && !f.full.Load() {
		f.full.Store(true)
		l.c.tierBudget.pausedBy(f)
		return foreign, true
	}
	return foreign, false
}

// tier is the feed's tier; zero for the source.
func (f *feed) tier() retrytopics.Tier {
	if f.isSource() {
		return retrytopics.Tier{}
	}
	return retrytopics.Tier{Delay: f.delay, Topic: f.topic}
}

// admit keeps a copy of a record that was just read, or only notes when it is due; the caller holds the lock. What is sooner than
// all that the feed holds is its next one, for which there is always room.
func (f *feed) admit(r *kgo.Record, due int64) (kept bool) {
	if size := packedSize(packedLen(r)); !f.isNext(due) && !f.lane.c.tierBudget.admits(due, size) {
		f.evicted.add(r.Offset, due, size)
		f.lane.c.tierBudget.evictedBytes.Add(size)
		return false
	}
	f.keep(pack(r, due))
	return true
}

// isNext reports whether a record due at that time would be the feed's next one.
func (f *feed) isNext(due int64) bool {
	return f.dueCount() == 0 && (len(f.parked) == 0 || due < f.parked[0].due)
}

// keep takes a record into the heap and the budget; the caller holds the lock.
func (f *feed) keep(p packedRecord) {
	f.lane.c.tierBudget.take(p.size(), f.inMemory == 0)
	f.inMemory++
	f.inMemoryBytes += p.size()
	f.parked.push(p)
}

// unpack unpacks an item that a worker has. From then on it counts with all its memory, until the budget has it back in release.
func (f *feed) unpack(it *item) {
	if it.rec != nil {
		return
	}
	it.rec, it.packed = it.packed.unpack(f), nil
	more := unpackedSize(it.rec)
	f.lane.c.tierBudget.take(more, false)
	it.size += more
}

// release takes records off the feed's books; the caller holds the lock. Their bytes the budget has back when they are no longer used.
func (f *feed) release(n int, bytes int64) {
	if n == 0 {
		return
	}
	f.inMemory -= n
	f.inMemoryBytes -= bytes
	if f.inMemory == 0 {
		f.lane.c.tierBudget.emptied()
	}
}

// dropParked lets go of the heap and the index; the caller holds the lock.
func (f *feed) dropParked() {
	if f.timer != nil {
		f.timer.Stop()
	}
	f.parked, f.evicted, f.starved = nil, evictedIndex{}, false
	f.lane.c.tierBudget.giveBack(f.inMemoryBytes)
	f.release(f.inMemory, f.inMemoryBytes)
	f.lane.c.tierBudget.remove(f)
}

// retire has the feed go on without its topic. It returns how many records had given up their bytes: these are gone.
func (f *feed) retire() (lost int) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.retired.Store(true)
	lost = f.evicted.n
	f.evicted, f.starved = evictedIndex{}, false
	f.lane.c.tierBudget.remove(f)
	return lost
}

// requeueTopic is the topic in which a record waits on that has to be written again: its own, unless nothing is to go into that.
func (f *feed) requeueTopic(m *headers.Meta) string {
	if tiers := f.lane.siblings; f.drained && len(tiers.Tiers) > 0 {
		return next(tiers, retrytopics.Tier{}, time.Until(m.NotBefore)).Topic
	}
	return f.topic
}

// repark parks a record again that a worker found not to be due, and reports false where it has to be written again instead. A
// worker finds that when the host's clock was set.
func (f *feed) repark(r *kgo.Record, now time.Time) bool {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	at := f.dueOf(r, f.readAt(r.Offset, now), now)
	switch {
	case at <= now.UnixMilli():
		return false
	case f.lane.state >= laneDraining: // the next owner reads it
	case f.retired.Load():
		f.keep(pack(r, at))
	default:
		f.admit(r, at)
	}
	return true
}

// warnShared says, once a topic, that another group's failures are in it.
func (c *Consumer) warnShared(topic string) {
	c.throttle.Once("sharing "+topic, 24*time.Hour, func() {
		c.log.Info("siding: another group shares this retry topic; its records are passed over. Put {group} into Config.Naming to keep groups apart", "retry_topic", topic)
	})
}
