package consumer

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/consumer/internal/opentxn"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/retrytopics"
)

// feed is the common part of a [sourceFeed] and a [tierFeed]: the intake of one partition. The
// lane's lock guards it.
type feed struct {
	fetch
	kind
	lane *lane
	tier retrytopics.Tier // zero for a source
	id   kadm.TopicID     // of a tier's topic, to which the offsets belong; kgo knows a source's

	origin *origin // of its attempts

	tracker     offsets.Tracker
	window      isolate.Window  // which records may start
	committedAt time.Time       // when the broker last accepted an offset
	noted       *guard.Status   // of the topic's guard, as that commit said
	says, said  commitmark.Lane // of a lane's source, in the next commit and in that one
	epoch       int32           // leader epoch up to which it was read; a commit has it (KIP-320)
	end         int64           // the high watermark, as of the last fetch that brought records

	fetchErrors fetchErrors      // why the partition cannot be read
	position    opentxn.Position // finds open transactions
	// a worker has a unit; under OrderPartition no other worker gets one
	busy  bool
	ready fifo.Queue[*item] // single records that are ready
	first fifo.Queue[*item] // of these, redriven ones that did not run since: they are no retries
}

// kind is what is different in a source's feed and a tier's. The caller holds the lane's lock.
type kind interface {
	// nextOffset returns the offset of the record that a worker would take first, -1 if none waits.
	nextOffset() int64
	// waiting returns the offsets of the records that wait for a worker, in their order.
	waiting() []int64
	// mayRunWaiting reports whether one of these may run now.
	mayRunWaiting() bool
	// noneDue reports whether the feed is a tier's, and no record of it is due.
	noneDue(now time.Time) bool
	// unclaim has a tier's due record wait without a claim to its key. It reports false of a
	// source's.
	unclaim(it *item) bool
}

// start sets where the partition starts.
func (f *feed) start(at startPosition) {
	f.tracker, f.epoch = offsets.New(at.next.Offset, at.committed), at.epoch
	f.tracker.Restore(at.said.Finished, at.epoch)
	f.said = at.said.Lane
	if f.lane.held != nil && f.tier.Topic == "" {
		f.lane.held.Restore(at.said.Heads, at.epoch, time.Now().Add(f.lane.c.cfg.MaxHold))
	}
	c, only := f.lane.c, f.window.IsOnly()
	f.window = isolate.New(
		isolate.Settings{
			CrashLimit: f.lane.policy.CrashLimit, Interval: c.cfg.CommitInterval, Tier: f.tier.Topic != "" || f.lane.held != nil,
			Ask: func() { c.asks.Add(f.lane) }, Rests: func() bool { return time.Now().UnixNano() < c.restUntil.Load() }, Now: time.Now,
		},
		isolate.Start{Evidence: at.said.Evidence, Process: c.process, Floor: at.next.Offset, End: at.end, Epoch: at.epoch},
	)
	f.window.SetOnly(only)
}

// push makes an item ready; the caller holds the lane's lock.
func (f *feed) push(it *item) {
	if it.fresh {
		f.first.Push(it)
	} else {
		f.ready.Push(it)
	}
}

// mayCut reports whether a worker may take a unit, if the feed has one.
func (f *feed) mayCut() bool { return !f.busy || f.lane.c.cfg.Order != OrderPartition }

// nextIn returns the index of the first record of a queue that may start, -1 if none may.
func (f *feed) nextIn(queue *fifo.Queue[*item]) int {
	if !f.window.Suspects().IsIsolated() {
		if queue.Len() > 0 && f.window.MayStart((*queue.Head()).offset()) {
			return 0
		}
		return -1
	}
	return slices.IndexFunc(queue.All(), func(it *item) bool { return f.window.MayStart(it.offset()) })
}

// nextReady is nextIn for a source.
func (f *feed) nextReady() int { return f.nextIn(&f.ready) }

// condemned returns the failure of a record that must not run; nil if it may.
func (f *feed) condemned(offset int64) *crashError {
	s := f.window.Suspects()
	a, ok := s.Condemns(offset)
	if !ok {
		return nil
	}
	return &crashError{Alone: a, deaths: s.Deaths, by: s.Since}
}

// popFrom takes a record out of a queue, to start it.
func (f *feed) popFrom(queue *fifo.Queue[*item], i int) *item {
	it := queue.Remove(i)
	f.window.Begin(1, it.offset())
	return it
}

// forgetAccidents drops suspects of a tier none of which the dead processes can have run: they have
// been read, and none is due yet. The floor of a tier stands still for as long as a record is
// parked, so processes that were killed hours apart would count as deaths in a row. The caller
// holds the lane's lock.
func (f *feed) forgetAccidents(now time.Time) {
	s := f.window.Suspects()
	if s != nil && !s.IsIsolated() && f.tracker.Next >= s.Suspect && !f.lane.runs(f) && f.noneDue(now) {
		f.window.Acquit()
		f.window.Ask()
	}
}

// needsCommit reports whether the feed has an offset to commit; the caller holds the lane's lock.
func (f *feed) needsCommit(now time.Time) bool {
	return f.tracker.Dirty() || f.hasUnsaidHeads() || f.window.IsAsked() || f.guardNoted() != f.noted || f.says != f.said || now.Sub(f.committedAt) >= recommitAfter
}

// guardNoted is what the next commit says about the topic's guard: nothing for a tier, or a lane
// that drains.
func (f *feed) guardNoted() *guard.Status {
	if f.tier.Topic != "" || f.lane.state >= laneDraining {
		return nil
	}
	return f.lane.guard.Noted()
}

// read registers the leader epoch of a record that was read. The epoch never falls: it is also that
// of records above the floor which an earlier owner has finished.
func (f *feed) read(epoch int32) {
	f.epoch = max(f.epoch, epoch)
	f.fetchErrors.end()
}

// evidence is what the next commit of the feed says about records that may kill the process, and
// how many commits were asked for that it answers.
func (f *feed) evidence(now time.Time) (offsets.Evidence, int64) {
	l := f.lane
	over := l.state >= laneDraining && !l.runs(f)
	asked := f.window.Asked()
	if l.state >= laneDraining && !over {
		asked = f.window.Answered() // the lane's last commit will be another one
	}
	e := f.window.Evidence(l.c.process, &f.tracker, f.nextOffset(), now, over)
	if l.state >= laneDraining {
		e.RunSingly() // its handler ignores the drain
	}
	return e, asked
}

// pauser returns the pauser of the client that reads the feed.
func (f *feed) pauser() *fetchPauser {
	if f.tier.Topic == "" {
		return &f.lane.c.sourcePauser
	}
	return &f.lane.c.retryPauser
}

// readTrouble records an error of the feed's fetch, and pauses it: kgo would repeat it at once.
func (f *feed) readTrouble(err error) {
	f.lane.mu.Lock()
	wait := f.fetchErrors.add(err, time.Now())
	f.lane.mu.Unlock()
	f.pauser().rest(&f.fetch, wait)
}

// Finish implements forward.Origin.
func (f *feed) Finish(offset int64) { f.tracker.Finish(offset) }

// anyRead reports whether one of the feeds that are read meets a condition.
func anyRead(l *lane, is func(*feed) bool) bool {
	for f := range l.read() {
		if is(f) {
			return true
		}
	}
	return false
}

// heads returns what the next commit of the feed says of heads, and which changes that says.
func (f *feed) heads() ([]offsets.Head, uint64) {
	h := f.lane.held
	if h == nil || f.tier.Topic != "" {
		return nil, 0
	}
	return h.Commit(f.tracker.IsFinished), h.Changes()
}

// hasUnsaidHeads reports whether no commit has said the last change of the heads.
func (f *feed) hasUnsaidHeads() bool {
	return f.lane.held != nil && f.tier.Topic == "" && f.lane.held.Unsaid()
}

// saidHeads registers that an accepted commit has said so many changes of the heads.
func (f *feed) saidHeads(changes uint64) {
	if f.lane.held != nil && f.tier.Topic == "" {
		f.lane.held.Accepted(changes)
	}
}
