package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// assigned is kgo's callback: the member's new partitions, and at every session's start the moment
// to look at those that it kept.
func (c *Consumer) assigned(ctx context.Context, cl *kgo.Client, added map[string][]int32) {
	<-c.joined
	c.membership.SetJoining(false)
	added, again := c.subscription.Begin(added)
	if len(again) > 0 {
		cl.AddConsumeTopics(again...) // kgo joins again, and has the partitions assigned anew
	}
	member, _ := cl.GroupMetadata()
	c.replaceStale(ctx, member, added)
	c.takeOver(member, added)
	select {
	case c.newLanes <- struct{}{}:
	default:
	}
	c.isAssigned.Do(func() { c.wg.Go(c.awaitReady) })
}

// takeOver makes lanes of partitions that the member has from now on.
func (c *Consumer) takeOver(member string, added map[string][]int32) {
	if len(added) == 0 {
		return
	}
	var predecessors []*lane
	c.source.betweenPolls(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for topic, partitions := range added {
			for _, p := range partitions {
				at := topicPartition{topic, p}
				if old := c.lanes[at]; old != nil {
					// never revoked: its membership is over
					predecessors = append(predecessors, old)
				}
				c.lanes[at] = c.newLane(topic, p, member)
				delete(c.truncations, at)
			}
		}
		c.countLanes()
	})
	c.discard(predecessors)
}

// adjustFetchOffsets is kgo's AdjustFetchOffsetsFn. It takes out the partitions that kgo is not to
// begin to read: those that the member does not have any more, since kgo fetches again what an
// earlier session did not come to, though a topic that it was told to forget meanwhile was given
// back; and those that it reads already, see subscription. Two positions on one partition would
// overwrite each other.
//
// It puts those in whose offset the group's coordinator refused: kgo would neither read them nor
// ask again. An error from here would end the session of the whole member, so there is none but
// that the session is over.
func (c *Consumer) adjustFetchOffsets(ctx context.Context, inGroup map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	known := map[*lane]kgo.EpochOffset{}
	for topic, partitions := range inGroup {
		for p, o := range partitions {
			if l := c.lane(topic, p); l != nil && !l.isRead() {
				known[l] = o.EpochOffset()
			}
		}
	}
	lanes := slices.DeleteFunc(c.lanesNow(), func(l *lane) bool {
		_, ok := known[l]
		return !ok && (l.isRead() || !l.isStarting())
	})
	placed, err := c.positions(ctx, lanes, func(l *lane) (kgo.EpochOffset, error) {
		if at, ok := known[l]; ok {
			return at, nil
		}
		return kgo.EpochOffset{}, fmt.Errorf("the coordinator refused the offset of group %q on %v", c.cfg.Group, l)
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	for _, l := range lanes { // kgo has them from here
		// Of the partition the lane that is there now: it may have started anew meanwhile, for a
		// tier that was truncated.
		if now := c.lanes[topicPartition{l.topic, l.partition}]; now != nil {
			now.startedAt()
		}
	}
	c.mu.Unlock()
	begin := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range placed {
		begin[topic] = map[int32]kgo.Offset{}
		for p, at := range partitions {
			begin[topic][p] = kgo.NewOffset().At(at.Offset).WithEpoch(at.Epoch)
		}
	}
	return begin, nil
}

// positions finds where new source partitions start, by their committed offsets, and has their
// lanes opened. Without a committed offset kgo would resolve the start by itself, and somewhere
// else after a restart; so it is resolved here, and committed before the lane's first record runs.
// A partition of which that is not known is paused, and waits by itself, see seek. An error means
// that ctx is over.
func (c *Consumer) positions(ctx context.Context, lanes []*lane, committed func(*lane) (kgo.EpochOffset, error)) (map[string]map[int32]kgo.EpochOffset, error) {
	open := map[string][]*lane{} // by topic: one whose siblings are missing holds up no other
	var postponed []*lane
	placed := map[string]map[int32]kgo.EpochOffset{}
	starts := c.findStarts(ctx, lanes, committed)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, l := range lanes {
		at, err := starts.of(l)
		if placed[l.topic] == nil {
			placed[l.topic] = map[int32]kgo.EpochOffset{}
		}
		placed[l.topic][l.partition] = at.next
		if err != nil {
			c.log.Warn("siding: where a partition starts is not known yet; the others go on", "topic", l.topic, "partition", l.partition, "error", err)
			c.deferStart(l, err)
			postponed = append(postponed, l)
			continue
		}
		l.setStart(at)
		c.startFound(l)
		open[l.topic] = append(open[l.topic], l)
	}
	for _, lanes := range open {
		c.wg.Go(func() { c.startLanes(lanes) })
	}
	if len(postponed) > 0 {
		c.wg.Go(func() { c.awaitStarts(postponed) })
	}
	return placed, nil
}

// revoked is kgo's callback for partitions that go to another member. When it returns the new owner
// may start, so it returns only when all that the lanes will ever commit is committed.
//
// kgo calls it also for partitions that were lost long ago: a refused commit made the member join
// again under a new id, and the assignment that it got then lacks them. Their work is void.
func (c *Consumer) revoked(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
	<-c.joined
	c.membership.SetJoining(false)
	defer c.membership.SetJoining(true)
	c.subscription.End(lost)
	member, _ := cl.GroupMetadata()
	c.lose(func(l *lane) bool { return contains(lost, l) && !l.isOwnedBy(member) })
	c.revoke(ctx, func(l *lane) bool { return contains(lost, l) })
}

// lost is kgo's callback when the membership is over: another member may run the records already.
func (c *Consumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-c.joined
	defer c.membership.Lost()
	c.subscription.End(lost)
	if n := c.lose(func(l *lane) bool { return contains(lost, l) }); n > 0 {
		c.log.Warn("siding: membership lost, uncommitted work is discarded", "partitions", n)
	}
}

// lose discards lanes that somebody else may own by now, and returns how many. They leave the table
// at once, so that none of them starts anew meanwhile.
func (c *Consumer) lose(which func(*lane) bool) int {
	c.mu.Lock()
	lanes := c.pick(which)
	for _, l := range lanes {
		delete(c.lanes, topicPartition{l.topic, l.partition})
	}
	c.countLanes()
	c.mu.Unlock()
	c.discard(lanes)
	return len(lanes)
}

// discard ends lanes whose work is void.
func (c *Consumer) discard(lanes []*lane) {
	for _, l := range lanes {
		l.close()
	}
	c.remove(lanes)
}

// revoke hands lanes over in order: drain all of them at once, commit together, forget. They begin
// to drain while the table is locked, so that none of them starts anew meanwhile.
func (c *Consumer) revoke(ctx context.Context, which func(*lane) bool) {
	deadline := time.Now().Add(c.cfg.DrainTimeout)
	var mine, others []*lane // others: somebody else is giving them up already
	c.mu.Lock()
	for _, l := range c.pick(which) {
		if l.beginDrain() {
			mine = append(mine, l)
		} else {
			others = append(others, l)
		}
	}
	c.mu.Unlock()
	if len(mine) > 0 {
		c.drain(ctx, mine, deadline)
	}
	for _, l := range others {
		<-l.gone
	}
}

// drain sees to lanes that began to drain.
func (c *Consumer) drain(ctx context.Context, lanes []*lane, deadline time.Time) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		stuck []*attempt
	)
	for _, l := range lanes {
		wg.Go(func() {
			left := l.drain(deadline)
			mu.Lock()
			defer mu.Unlock()
			stuck = append(stuck, left...)
		})
	}
	wg.Wait()
	if err := c.commit(context.WithoutCancel(ctx), lanes); err != nil {
		c.log.Warn("siding: lanes handed over without their last commit, their records run again", "partitions", len(lanes), "error", err)
	}
	c.discard(lanes)
	for _, a := range stuck {
		c.log.Error("siding: a handler ignores that it was cancelled; its record runs again under the next owner",
			"topic", a.from.source, "partition", a.from.partition, "feed", a.from.topic, "offset", a.off)
	}
}

// replaceStale looks, at a session's start, at the lanes that the member kept. If it was expelled
// and has joined again under a new id, others may have owned them meanwhile: their work is void,
// and they start anew from what is committed.
func (c *Consumer) replaceStale(ctx context.Context, member string, added map[string][]int32) {
	isStale := func(l *lane) bool { return !l.isOwnedBy(member) && !contains(added, l) }
	c.mu.Lock()
	any := len(c.pick(isStale)) > 0
	c.mu.Unlock()
	if !any {
		return
	}
	var stale, renewed []*lane
	c.source.betweenPolls(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		stale = c.pick(isStale)
		for _, l := range stale {
			anew := c.newLane(l.topic, l.partition, member)
			if l.isRead() {
				anew.intake = intakeReseeking
			}
			c.lanes[topicPartition{l.topic, l.partition}] = anew
			renewed = append(renewed, anew)
		}
	})
	c.log.Warn("siding: the member was expelled and has joined again; its partitions start anew from the committed offsets", "partitions", len(stale))
	c.discard(stale)
	c.restart(ctx, renewed)
}

// restart has new lanes begin at their committed offsets, of partitions that kgo reads at another
// position. Until that is set, what kgo reads of them is let go; the others read on.
func (c *Consumer) restart(ctx context.Context, lanes []*lane) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stop, cancel)() // kgo ends ctx only after its callbacks returned
	placed, err := c.positions(ctx, lanes, c.committedOf(ctx, lanes))
	if err != nil {
		return // the consumer stops
	}
	c.source.betweenPolls(func() { c.rewind(lanes, placed) })
}

// rewind sets the group client to where lanes start, and has them take in what it reads from there.
// It runs in a turn of the source's poll loop. Lanes whose start is not known yet are seek's, and
// one that was replaced meanwhile has its position.
func (c *Consumer) rewind(lanes []*lane, placed map[string]map[int32]kgo.EpochOffset) {
	set := map[string]map[int32]kgo.EpochOffset{}
	for _, l := range lanes {
		if c.lane(l.topic, l.partition) != l {
			continue
		}
		l.mu.Lock()
		if l.intake == intakeReseeking && !l.startUnknown {
			l.intake = intakeOpen
			if set[l.topic] == nil {
				set[l.topic] = map[int32]kgo.EpochOffset{}
			}
			set[l.topic][l.partition] = kgo.EpochOffset{Epoch: -1, Offset: placed[l.topic][l.partition].Offset}
		}
		l.mu.Unlock()
	}
	c.group.SetOffsets(set)
}
