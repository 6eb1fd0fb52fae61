package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type topicPartition struct {
	topic     string
	partition int32
}

// assigned is kgo's callback: the member's new partitions, and at every session's start the moment to look at those that
// it kept.
func (c *Consumer) assigned(ctx context.Context, cl *kgo.Client, added map[string][]int32) {
	<-c.joined
	c.membership.set(false)
	added, again := c.subscription.begin(added)
	if len(again) > 0 {
		cl.AddConsumeTopics(again...) // kgo joins again, and has the partitions assigned anew
	}
	member, _ := cl.GroupMetadata()
	c.replaceStale(ctx, member, added)
	var predecessors []*lane
	c.mu.Lock()
	for topic, partitions := range added {
		for _, p := range partitions {
			at := topicPartition{topic, p}
			if old := c.lanes[at]; old != nil {
				predecessors = append(predecessors, old) // never revoked: its membership is over
			}
			c.lanes[at] = c.newLane(topic, p, member)
			delete(c.cuts, at)
		}
	}
	c.countLanes()
	empty := len(c.lanes) == 0
	c.mu.Unlock()
	c.lose(predecessors)
	select {
	case c.newLanes <- struct{}{}:
	default:
	}
	if empty {
		c.readyOnce()
	}
}

// offered is kgo's AdjustFetchOffsetsFn. It takes out the partitions that kgo is not to begin to read: those that the member does not
// have any more, since kgo fetches again what an earlier session did not come to, though a topic that it was told to forget meanwhile
// was given back; and those that it reads already, see subscription. Two positions on one partition would overwrite each other.
//
// It puts those in whose offset the group's coordinator refused: kgo would neither read them nor ask again. An error from here would
// end the session of the whole member, so there is none but that the session is over.
func (c *Consumer) offered(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	known := map[*lane]kgo.EpochOffset{}
	for topic, partitions := range offsets {
		for p, o := range partitions {
			if l := c.lane(topic, p); l != nil && !l.offered.Load() {
				known[l] = o.EpochOffset()
			}
		}
	}
	lanes := slices.DeleteFunc(c.lanesNow(), func(l *lane) bool {
		_, ok := known[l]
		return !ok && (l.offered.Load() || !l.isStarting())
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
	for _, l := range lanes { // kgo has them from here
		l.offered.Store(true)
	}
	begin := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range placed {
		begin[topic] = map[int32]kgo.Offset{}
		for p, at := range partitions {
			begin[topic][p] = kgo.NewOffset().At(at.Offset).WithEpoch(at.Epoch)
		}
	}
	return begin, nil
}

// positions finds where new source partitions start, by their committed offsets, and has their lanes opened. Without a committed offset
// kgo would resolve the start by itself, and somewhere else after a restart; so it is resolved here, and committed before the lane's
// first record runs. A partition of which that is not known is paused, and waits by itself, see seek. An error means that ctx is over.
func (c *Consumer) positions(ctx context.Context, lanes []*lane, committed func(*lane) (kgo.EpochOffset, error)) (map[string]map[int32]kgo.EpochOffset, error) {
	open := map[string][]*lane{} // by topic: one whose siblings are missing holds up no other
	var postponed []*lane
	placed := map[string]map[int32]kgo.EpochOffset{}
	starts := c.startsOf(ctx, lanes, committed)
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
			c.postpone(l, err)
			postponed = append(postponed, l)
			continue
		}
		l.startAt(at)
		open[l.topic] = append(open[l.topic], l)
	}
	for _, lanes := range open {
		c.wg.Go(func() { c.open(lanes) })
	}
	if len(postponed) > 0 {
		c.wg.Go(func() { c.seek(postponed) })
	}
	if len(lanes) == 0 {
		c.readyOnce()
	}
	return placed, nil
}

// isAnew reports whether a source was deleted and made anew while it was consumed.
func (c *Consumer) isAnew(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.anew[topic]
}

// revoked is kgo's callback for partitions that go to another member. When it returns the new owner may start, so it
// returns only when all that the lanes will ever commit is committed.
//
// kgo calls it also for partitions that were lost long ago: a refused commit made the member join again under a new id,
// and the assignment that it got then lacks them. Their work is void.
func (c *Consumer) revoked(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
	<-c.joined
	c.membership.set(false)
	defer c.membership.set(true)
	c.subscription.end(lost)
	member, _ := cl.GroupMetadata()
	var mine, stale []*lane
	for _, l := range c.lanesOf(lost) {
		if l.heldBy(member) {
			mine = append(mine, l)
		} else {
			stale = append(stale, l)
		}
	}
	c.lose(stale)
	c.giveUp(ctx, mine)
}

// lost is kgo's callback when the membership is over: another member may run the records already.
func (c *Consumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-c.joined
	defer c.membership.lost()
	c.subscription.end(lost)
	lanes := c.lanesOf(lost)
	if len(lanes) > 0 {
		c.log.Warn("siding: membership lost, uncommitted work is discarded", "partitions", len(lanes))
	}
	c.lose(lanes)
}

// lose discards lanes that somebody else may own by now.
func (c *Consumer) lose(lanes []*lane) {
	for _, l := range lanes {
		l.forget()
	}
	c.remove(lanes)
}

// giveUp hands lanes over in order: drain all of them at once, commit together, forget.
func (c *Consumer) giveUp(ctx context.Context, lanes []*lane) (stuck []*attempt) {
	if len(lanes) == 0 {
		return nil
	}
	deadline := time.Now().Add(c.cfg.DrainTimeout)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		mine   []*lane
		others []*lane // somebody else is giving them up already
	)
	for _, l := range lanes {
		wg.Go(func() {
			first, left := l.drain(deadline)
			mu.Lock()
			defer mu.Unlock()
			stuck = append(stuck, left...)
			if first {
				mine = append(mine, l)
			} else {
				others = append(others, l)
			}
		})
	}
	wg.Wait()
	if err := c.commit(context.WithoutCancel(ctx), mine); err != nil {
		c.log.Warn("siding: lanes handed over without their last commit, their records run again", "partitions", len(mine), "error", err)
	}
	for _, l := range mine {
		l.forget()
	}
	c.remove(mine)
	for _, l := range others {
		<-l.gone
	}
	for _, a := range stuck {
		c.log.Error("siding: a handler ignores that it was cancelled; its record runs again under the next owner",
			"topic", a.from.lane.topic, "partition", a.from.lane.partition, "feed", a.from.topic, "offset", a.off)
	}
	return stuck
}

// replaceStale looks, at a session's start, at the lanes that the member kept. If it was expelled and has joined again
// under a new id, others may have owned them meanwhile: their work is void, and they start anew from what is committed.
func (c *Consumer) replaceStale(ctx context.Context, member string, added map[string][]int32) {
	var stale []*lane
	for _, l := range c.lanesNow() {
		if !l.heldBy(member) && !contains(added, l) {
			stale = append(stale, l)
		}
	}
	if len(stale) == 0 {
		return
	}
	c.log.Warn("siding: the member was expelled and has joined again; its partitions start anew from the committed offsets", "partitions", len(stale))
	c.lose(stale)
	anew := make([]*lane, 0, len(stale))
	c.mu.Lock()
	for _, l := range stale {
		fresh := c.newLane(l.topic, l.partition, member)
		fresh.offered.Store(l.offered.Load())
		c.lanes[topicPartition{l.topic, l.partition}] = fresh
		anew = append(anew, fresh)
	}
	c.countLanes()
	c.mu.Unlock()
	c.restart(ctx, anew)
}

// restart sets the group client back to the committed offsets of the lanes. It runs within kgo's callback, during which
// nothing is polled: so no record from the old position can reach a new lane, and none of the new position is missed. A lane whose
// offset is refused waits by itself: the callback holds up all of the member's.
func (c *Consumer) restart(ctx context.Context, lanes []*lane) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stop, cancel)() // kgo ends ctx only after its callbacks returned
	placed, err := c.positions(ctx, lanes, c.committedOf(ctx, lanes))
	if err != nil {
		return // the consumer stops
	}
	for _, partitions := range placed {
		for p, at := range partitions {
			partitions[p] = kgo.EpochOffset{Epoch: -1, Offset: at.Offset}
		}
	}
	c.group.SetOffsets(placed)
}

func contains(m map[string][]int32, l *lane) bool {
	for _, p := range m[l.topic] {
		if p == l.partition {
			return true
		}
	}
	return false
}

func keys[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	return all
}

func (c *Consumer) lane(topic string, partition int32) *lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lanes[topicPartition{topic, partition}]
}

func (c *Consumer) lanesOf(m map[string][]int32) (all []*lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, partitions := range m {
		for _, p := range partitions {
			if l := c.lanes[topicPartition{topic, p}]; l != nil {
				all = append(all, l)
			}
		}
	}
	return all
}

func (c *Consumer) lanesNow() []*lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*lane, 0, len(c.lanes))
	for _, l := range c.lanes {
		all = append(all, l)
	}
	return all
}

// remove takes lanes out of the table and their tiers off the retry client.
func (c *Consumer) remove(lanes []*lane) {
	if len(lanes) == 0 {
		return
	}
	c.mu.Lock()
	for _, l := range lanes {
		at := topicPartition{l.topic, l.partition}
		if c.lanes[at] == l {
			delete(c.lanes, at)
		}
	}
	c.countLanes()
	c.mu.Unlock()
	c.retryPoll.remove(lanes)
}

func (c *Consumer) countLanes() { c.laneCount.Store(int64(len(c.lanes))) }

// share is a lane's part of a budget of the process.
func (c *Consumer) share(of int64) int64 { return of / max(c.laneCount.Load(), 1) }
