package consumer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/consumer/internal/tier"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/retrytopics"
)

// tierFeed is the intake of a retry partition. Its field parked holds the records that wait until
// they are due, and knows the feed as its [tier.Lane].
type tierFeed struct {
	feed
	drained bool // the tier is no longer configured: nothing new goes into it
	parked  *tier.Tier
	// a redriven record has the next turn, if one is ready
	firstNext bool
	// Under OrderKey, due retries that wait for the budget without a claim to their keys, which
	// source records may need.
	unclaimed fifo.Queue[*item]
	// The same of redriven records that wait for the end of a hold.
	unclaimedFirst fifo.Queue[*item]
}

func newTierFeed(l *lane, t retrytopics.Tier, drained bool) *tierFeed {
	f := &tierFeed{drained: drained, feed: feed{
		lane: l, fetch: fetch{topic: t.Topic, partition: l.partition}, tier: t, origin: l.newOrigin(t.Topic, t.Delay),
	}}
	f.parked = tier.New(l.c.tierEnv, f, tier.Config{
		Topic: t.Topic, Partition: l.partition, Delay: t.Delay,
		Wait: l.policy.jittered(t.Delay), MaxWait: l.policy.jittered(l.policy.MaxRetryAfter),
		Provision: l.c.cfg.Provision, Log: l.log,
	}, &f.tracker)
	f.kind = f
	return f
}

func (f *tierFeed) nextOffset() int64 {
	if f.ready.Len() > 0 {
		return (*f.ready.Head()).offset()
	}
	return -1
}

func (f *tierFeed) waiting() (found []int64) {
	if !f.mayCut() {
		return nil
	}
	for _, it := range f.first.All() {
		found = append(found, it.offset())
	}
	if !f.lane.guard.HoldsRetries() { // else the others wait for the retry budget
		for _, it := range f.ready.All() {
			found = append(found, it.offset())
		}
	}
	return found
}

func (f *tierFeed) mayRunWaiting() bool { return true }

// takePolled takes polled records of the partition: it skips records of other groups, and parks the
// others. It reports whether the fetch should pause: records that are overdue and find no room can
// wait on the broker.
func (f *tierFeed) takePolled(id [16]byte, recs []*kgo.Record, end int64) (pause bool) {
	foreign, pause := f.admit(id, recs, end)
	if foreign > 0 {
		c := f.lane.c
		c.throttle.Once("sharing "+f.topic, 24*time.Hour, func() {
			c.log.Info("siding: another group shares this retry topic; its records are skipped. Add {group} to Config.Naming to separate the groups", "retry_topic", f.topic)
		})
	}
	return pause
}

func (f *tierFeed) admit(id [16]byte, recs []*kgo.Record, end int64) (foreign int, pause bool) {
	l := f.lane
	now := time.Now()
	refused := false
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || f.parked.Retired() {
		return 0, false
	}
	f.end = end
	f.parked.Read(cmp.Or(id, f.id), f.tracker.Next, now)
	for _, r := range recs {
		f.window.Suspects().Read(r.Offset, r.LeaderEpoch)
		if f.tracker.FinishedBefore(r.Offset, r.LeaderEpoch) {
			f.tracker.Skip(r.Offset + 1)
			continue
		}
		if r.Attrs.IsControl() { // the end of a transaction, see withoutMarkers
			f.tracker.Skip(r.Offset + 1)
			f.read(r.LeaderEpoch)
			continue
		}
		if !f.tracker.Deliver(r.Offset) {
			continue
		}
		f.read(r.LeaderEpoch)
		// A record without a group is broken, and belongs to no other group. Any other broken
		// record belongs to the group that it names.
		if group, _, _ := reserved.Peek(r.Headers); len(group) > 0 && !slices.ContainsFunc(l.c.groups, func(name string) bool { return string(group) == name }) {
			f.tracker.Finish(r.Offset)
			foreign++
			continue
		}
		refused = f.parked.Admit(r, now)
	}
	f.parked.Promote()
	if refused && !f.full.Load() {
		f.full.Store(true)
		f.parked.AwaitRoom()
		return foreign, true
	}
	return foreign, false
}

func (f *tierFeed) hasWork() bool {
	_, i := f.next()
	return f.mayCut() && i >= 0
}

// next returns the queue of the next record, and its index there, -1 if none may start. Redriven
// records and retries take turns.
func (f *tierFeed) next() (from *fifo.Queue[*item], i int) {
	held := f.lane.guard.HoldsRetries()
	if f.firstNext || f.ready.Len() == 0 || held {
		if i = f.nextIn(&f.first); i >= 0 || held {
			return &f.first, i
		}
	}
	if i = f.nextIn(&f.ready); i >= 0 {
		return &f.ready, i
	}
	return &f.first, f.nextIn(&f.first)
}

// cut returns the next unit, nil if none may start. That can be so although hasWork found one a
// moment ago, since the budget changes without the lane's lock.
func (f *tierFeed) cut() *unit {
	if !f.mayCut() {
		return nil
	}
	from, i := f.next()
	var run guard.Run
	if i >= 0 && from == &f.ready {
		var ok bool
		if run, ok = f.lane.guard.Retry(f.lane); !ok {
			from, i = &f.first, f.nextIn(&f.first)
		}
	}
	if i < 0 {
		return nil
	}
	it := f.popFrom(from, i)
	f.firstNext = !it.fresh
	f.busy = true
	f.parked.Take(it.parked)
	u := &unit{feed: &f.feed, tier: f, item: it, key: it.hash, run: run}
	u.setSpan(it.offset(), it.offset())
	return u
}

// due is how many records are due and do not run, but for those that wait for another one of their
// key.
func (f *tierFeed) due() int {
	return f.ready.Len() + f.first.Len() + f.unclaimed.Len() + f.unclaimedFirst.Len()
}

// unclaim has a due record wait without a claim to its key.
func (f *tierFeed) unclaim(it *item) bool {
	if it.fresh {
		f.unclaimedFirst.Push(it)
	} else {
		f.unclaimed.Push(it)
	}
	return true
}

// noneDue reports whether no record of the feed is due.
func (f *tierFeed) noneDue(now time.Time) bool {
	for _, q := range f.lane.keys { // records that wait for another one of their key
		if q != nil && slices.ContainsFunc(q.All(), func(w waitingItem) bool { return w.feed == &f.feed }) {
			return false
		}
	}
	return f.due() == 0 && f.parked.Due() > now.UnixMilli()
}

// drop drops all waiting records.
func (f *tierFeed) drop() {
	f.ready, f.first, f.unclaimed, f.unclaimedFirst = fifo.Queue[*item]{}, fifo.Queue[*item]{}, fifo.Queue[*item]{}, fifo.Queue[*item]{}
	f.parked.Drop()
}

// join adds the feed to its lane, unless the lane is revoked. It reports whether the caller must
// have the feed read. A lane without positions finds them for all its tiers later, and has them
// read.
func (f *tierFeed) join() bool {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || l.reads(f.topic) {
		return false
	}
	f.window.SetOnly(l.source.window.IsOnly()) // a record of the lane may just run alone
	l.setTiers(append(slices.Clone(l.tiers()), f))
	return l.positionsLoaded
}

// requeueTopic is the topic for a record that must wait longer and is written again: its own, or a
// configured tier's if its tier is drained.
func (f *tierFeed) requeueTopic(m *headers.Meta) string {
	if tiers := f.lane.siblings; f.drained && len(tiers.Tiers) > 0 {
		return next(tiers, retrytopics.Tier{}, time.Until(m.NotBefore)).Topic
	}
	return f.topic
}

// Lock and the methods below implement tier.Lane.
func (f *tierFeed) Lock() { f.lane.mu.Lock() }

func (f *tierFeed) Unlock() { f.lane.mu.Unlock() }

func (f *tierFeed) Closing() bool { return f.lane.state >= laneDraining }

func (f *tierFeed) Enqueue(it *tier.Item) {
	due := &item{parked: it, fresh: it.Fresh()}
	if l := f.lane; l.keysTiers() && (l.guard.Holds() || !due.fresh && l.guard.HoldsRetries()) {
		f.unclaim(due)
		return
	}
	f.lane.enqueue(&f.feed, due)
}

// Ready does not count the retries that wait for the budget. Redriven records behind them become
// ready.
func (f *tierFeed) Ready() int {
	if f.lane.guard.HoldsRetries() {
		return f.first.Len()
	}
	return f.first.Len() + f.ready.Len()
}

func (f *tierFeed) Wake() { f.lane.wakeLocked() }

func (f *tierFeed) Reopen() { f.full.Store(false) }

func (f *tierFeed) Context() context.Context { return f.lane.abandon }

// OutOfLog moves the tier's position. A paused retry poll would not find it out of range.
func (f *tierFeed) OutOfLog() {
	f.lane.c.move([]outOfRange{{at: topicPartition{f.topic, f.lane.partition}, feed: &f.feed, tier: f}}, f.lane.c.retryPoll.pollGuard)
}
