package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// assigned is kgo's callback at the start of each session, with the member's new partitions. It
// also checks the lanes that the member kept.
func (c *Consumer) assigned(ctx context.Context, cl *kgo.Client, added map[string][]int32) {
	<-c.joined
	c.setJoining(false)
	added, again := c.subscription.Begin(added)
	if len(again) > 0 {
		cl.AddConsumeTopics(again...) // kgo joins again, and is assigned the partitions again
	}
	member, _ := cl.GroupMetadata()
	c.replaceStale(ctx, member, added)
	c.takeOver(member, added)
	memberLog{c}.logAssigned(member, added)
	select {
	case c.newLanes <- struct{}{}:
	default:
	}
	c.isAssigned.Do(func() { c.wg.Go(c.awaitReady) })
}

// takeOver makes lanes for the partitions that the member was just assigned.
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
					// never revoked: its membership has ended
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

// setJoining registers that a join begins or ends. A join waits for the slowest drain of the group,
// and commits wait for it. So the lanes that are kept may start records that no commit has named,
// for as long as a session lasts. If the join takes longer, the group may have expelled the member.
func (c *Consumer) setJoining(joining bool) {
	c.membership.SetJoining(joining)
	c.restUntil.Store(0)
	if joining {
		session, _ := c.retryCl.OptValue(kgo.SessionTimeout).(time.Duration)
		c.restUntil.Store(time.Now().Add(session).UnixNano())
		for _, l := range c.lanesNow() {
			l.Wake()
		}
	}
}

// adjustFetchOffsets is kgo's AdjustFetchOffsetsFn. It removes partitions that kgo must not start
// to read:
//
//   - Partitions that the member no longer has. kgo repeats what an earlier session left undone,
//     even for a topic that kgo purged since.
//   - Partitions that kgo reads already (see session.Subscription). Two positions of one partition
//     would overwrite each other.
//
// It adds the partitions whose offset the coordinator refused: kgo would neither read them nor ask
// again. An error would end the session of the whole member. It therefore returns one only when the
// session has ended.
func (c *Consumer) adjustFetchOffsets(ctx context.Context, inGroup map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	known := map[*lane]cluster.Offset{}
	said := c.takeFetched()
	for topic, partitions := range inGroup {
		for p, o := range partitions {
			if l := c.lane(topic, p); l != nil && !l.isRead() {
				known[l] = cluster.Offset{EpochOffset: o.EpochOffset()}
				if at := said[topicPartition{topic, p}]; at.EpochOffset == o.EpochOffset() {
					known[l] = at
				}
			}
		}
	}
	lanes := slices.DeleteFunc(c.lanesNow(), func(l *lane) bool {
		_, ok := known[l]
		return !ok && (l.isRead() || !l.isStarting())
	})
	placed, err := c.positions(ctx, lanes, func(l *lane) (cluster.Offset, error) {
		if at, ok := known[l]; ok {
			return at, nil
		}
		return cluster.Offset{}, fmt.Errorf("the coordinator refused the offset of group %q on %v", c.cfg.Group, l)
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	for _, l := range lanes { // kgo reads them from here on
		// The partition's current lane may be another one: a truncated tier may have restarted it.
		if now := c.lanes[topicPartition{l.topic, l.partition}]; now != nil {
			now.startedAt()
		}
	}
	c.mu.Unlock()
	begin := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range placed {
		for p, at := range partitions {
			put(begin, topic, p, kgo.NewOffset().At(at.Offset).WithEpoch(at.Epoch))
		}
	}
	return begin, nil
}

// offsetsFetched is kgo's callback with the group's offsets, before adjustFetchOffsets. It keeps
// their metadata.
func (c *Consumer) offsetsFetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if p.Metadata != nil {
					c.fetched[topicPartition{t.Topic, p.Partition}] = cluster.Offset{
						EpochOffset: kgo.EpochOffset{Epoch: p.LeaderEpoch, Offset: p.Offset}, Metadata: *p.Metadata,
					}
				}
			}
		}
	}
	return nil
}

// takeFetched returns the offsets that kgo has fetched since.
func (c *Consumer) takeFetched() map[topicPartition]cluster.Offset {
	c.mu.Lock()
	defer c.mu.Unlock()
	fetched := c.fetched
	c.fetched = map[topicPartition]cluster.Offset{}
	return fetched
}

// positions finds the starts of source partitions, and has the lanes started. Without a committed
// offset kgo would choose the start itself, and choose another one after a restart. So positions
// resolves it here, and it is committed before the lane's first record runs. A partition whose
// start is unknown is paused; awaitStarts goes on to look for it. An error means that ctx has
// ended.
func (c *Consumer) positions(ctx context.Context, lanes []*lane, committed func(*lane) (cluster.Offset, error)) (map[string]map[int32]kgo.EpochOffset, error) {
	open := map[string][]*lane{} // by topic, so that missing siblings hold up no other topic
	var postponed []*lane
	placed := map[string]map[int32]kgo.EpochOffset{}
	starts := laneStarter{c}.findStarts(ctx, lanes, committed)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, l := range lanes {
		at, err := starts.of(l)
		put(placed, l.topic, l.partition, at.next)
		if err != nil {
			c.recordLog.add(recordKind{event: eventStartUnknown, topic: l.topic, why: err.Error()}, recordExample{partition: l.partition, offset: -1})
			laneStarter{c}.deferStart(l, err)
			postponed = append(postponed, l)
			continue
		}
		l.setStart(at)
		laneStarter{c}.startFound(l)
		open[l.topic] = append(open[l.topic], l)
	}
	for _, lanes := range open {
		c.wg.Go(func() { c.startLanes(lanes) })
	}
	if len(postponed) > 0 {
		c.wg.Go(func() { laneStarter{c}.awaitStarts(postponed) })
	}
	return placed, nil
}

// revoked is kgo's callback for partitions that go to another member. The new owner may start as
// soon as it returns. So it returns only after the last commit of the lanes.
//
// kgo calls it also for partitions that were lost long before: a refused commit made the member
// join again under a new id, and the new assignment lacks them. The lanes of those are discarded
// without a commit.
func (c *Consumer) revoked(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
	<-c.joined
	c.setJoining(false)
	defer c.setJoining(true)
	c.subscription.End(lost)
	member, _ := cl.GroupMetadata()
	memberLog{c}.logLost(c.lose(func(l *lane) bool { return contains(lost, l) && !l.isOwnedBy(member) }))
	// kgo may have ended ctx already: a leaving member's last session is over.
	c.revoke(context.WithoutCancel(ctx), "the group revokes them", func(l *lane) bool { return contains(lost, l) })
}

// lost is kgo's callback when the membership has ended: another member may run the records already.
func (c *Consumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-c.joined
	defer c.membership.Lost()
	c.subscription.End(lost)
	memberLog{c}.logLost(c.lose(func(l *lane) bool { return contains(lost, l) }))
	c.joinLogged.Store(false)
}

// lose discards lanes that another member may own by now, and returns them. It removes them
// from the table first, so that none of them restarts meanwhile.
func (c *Consumer) lose(which func(*lane) bool) []*lane {
	c.mu.Lock()
	lanes := c.pick(which)
	for _, l := range lanes {
		delete(c.lanes, topicPartition{l.topic, l.partition})
	}
	c.countLanes()
	c.mu.Unlock()
	c.discard(lanes)
	return lanes
}

// revoke hands lanes over in order: it drains all of them at once, commits them together and closes
// them. why is for the log. They begin to drain under the table's lock, so that none of them
// restarts meanwhile.
func (c *Consumer) revoke(ctx context.Context, why string, which func(*lane) bool) {
	deadline := time.Now().Add(c.cfg.DrainTimeout)
	var mine, others []*lane // others are draining already
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
		began := time.Now()
		memberLog{c}.logDraining(mine, why)
		if kept := c.drain(ctx, mine, deadline); len(kept) > 0 {
			memberLog{c}.logRevoked(kept, time.Since(began))
		}
	}
	for _, l := range others {
		<-l.gone
	}
}

// errNotOwned is why a commit left lanes out.
var errNotOwned = errors.New("the membership under which the member owned them has ended")

// drain completes the drain of lanes: it awaits their handlers and copies, commits, and closes
// them. It returns those that were not lost meanwhile.
func (c *Consumer) drain(ctx context.Context, lanes []*lane, deadline time.Time) (kept []*lane) {
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
	err := committer{c}.commit(ctx, lanes)
	if member, _ := c.group.GroupMetadata(); err == nil && slices.ContainsFunc(lanes, func(l *lane) bool { return l.isLeftOut(member) }) {
		err = errNotOwned
	}
	if err != nil {
		c.log.Warn("siding: lanes handed over without their last commit; records since their previous commit run again", "lanes", len(lanes), "error", err)
	}
	kept = slices.DeleteFunc(slices.Clone(lanes), (*lane).isLost)
	c.discard(lanes)
	for _, a := range stuck {
		c.recordLog.add(recordKind{event: eventStuck, topic: a.in.from.source}, a.example())
	}
	return kept
}

// replaceStale checks, at the start of a session, the lanes that the member kept. If the member was
// expelled and has joined again under a new id, others may have owned them meanwhile. Their work is
// then void, and they restart from the committed offsets.
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
			lane := c.newLane(l.topic, l.partition, member)
			if l.isRead() {
				lane.intake = intakeReseeking
			}
			c.lanes[topicPartition{l.topic, l.partition}] = lane
			renewed = append(renewed, lane)
		}
	})
	c.log.Warn("siding: the member was expelled and has joined again; its partitions restart from the committed offsets", "lanes", len(stale))
	c.discard(stale)
	c.restart(ctx, renewed)
}

// restart starts new lanes at their committed offsets, on partitions that kgo reads at another
// position. Until the position is set, their polled records are dropped. The other lanes read on.
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

// rewind sets the group client to the starts of lanes, and opens their intake. It runs in a turn of
// the source's poll loop. It skips lanes without a known start, which awaitStarts opens, and lanes
// that were replaced meanwhile.
func (c *Consumer) rewind(lanes []*lane, placed map[string]map[int32]kgo.EpochOffset) {
	set := map[string]map[int32]kgo.EpochOffset{}
	for _, l := range lanes {
		if c.lane(l.topic, l.partition) != l {
			continue
		}
		l.mu.Lock()
		if l.intake == intakeReseeking && !l.startUnknown {
			l.intake = intakeOpen
			put(set, l.topic, l.partition, kgo.EpochOffset{Epoch: -1, Offset: placed[l.topic][l.partition].Offset})
		}
		l.mu.Unlock()
	}
	c.group.SetOffsets(set)
}
