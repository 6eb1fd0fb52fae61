package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/consumer/internal/tier"
	"github.com/sidingkafka/siding/retrytopics"
)

// unconfiguredTier is a retry topic that is not configured, but has committed offsets of the group.
type unconfiguredTier struct {
	retrytopics.Tier
	source string
	// of the group or the former group that has offsets on this topic
	committed kadm.OffsetResponses
}

// drainedTierPollEvery is the interval at which a running consumer looks for new drained tiers. A
// member with another configuration, for example in a canary deployment, may leave records in one.
// The consumer also looks after each assignment. If it could not see all, it looks again after
// drainedTierPollSoon: a broker that learns of a new topic may refuse the offsets of all.
const (
	drainedTierPollEvery = time.Minute
	drainedTierPollSoon  = 10 * time.Second
)

// tierFinder finds retry topics that are not configured and still have records of the group.
type tierFinder struct{ *Consumer }

// drainedTierLoop looks for drained tiers until ctx ends, and adds them to running lanes.
func (c tierFinder) drainedTierLoop(ctx context.Context) {
	t := time.NewTimer(drainedTierPollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-c.newLanes:
		}
		err := errors.Join(c.findDrainedTiers(ctx), c.extendLanes(ctx))
		next := drainedTierPollEvery
		if err != nil {
			next = drainedTierPollSoon
		}
		t.Reset(next)
		if err != nil && ctx.Err() == nil {
			c.throttle.Once("inherit", time.Minute, func() {
				c.log.Warn("siding: some drained retry topics may not have been found; the consumer looks again within a minute", "error", err)
			})
		}
	}
}

// findDrainedTiers finds the drained tiers of configured sources: those with a committed offset of
// the group or of a former one. Tiers of sources that are no longer configured are only logged. An
// error names what could not be queried; all else is found nevertheless.
func (c tierFinder) findDrainedTiers(ctx context.Context) error {
	left, failure := c.unconfiguredTiers(ctx)
	if len(left) == 0 {
		return failure
	}
	now, err := c.cluster.Describe(ctx, slices.Collect(maps.Keys(left)))
	if err != nil {
		return errors.Join(failure, err)
	}
	ends := sync.OnceValues(func() (kadm.ListedOffsets, error) {
		return c.admin.ListEndOffsets(ctx, slices.Collect(maps.Keys(left))...)
	})
	for _, topic := range slices.Sorted(maps.Keys(left)) {
		tier, t := left[topic], now[topic]
		report := func(state string, log func(about ...any)) {
			if c.unconfiguredLogged[topic] == state { // the same state is found again each minute
				return
			}
			c.unconfiguredLogged[topic] = state
			listed, err := ends() // the lag is only information for operators
			if err != nil {
				c.log.Debug("siding: could not list the end offsets of retry topics", "error", err)
			}
			log("retry_topic", topic, "source", tier.source, "records_at_most", lagOf(tier.committed, listed, topic))
		}
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition): // deleted
		case t.Err != nil:
			report("unreadable", func(about ...any) {
				c.log.Error("siding: a retry topic of this group cannot be read; its records wait until it can be read", append(about, "error", t.Err)...)
			})
		case c.siblings[tier.source].Source == "":
			report("without a source", func(about ...any) {
				c.log.Warn("siding: a retry topic of this group belongs to a source that is not configured; its records do not run: "+
					"put the source back into Topics until it is empty, then delete it", about...)
			})
		case c.resized(tier.source, topic, t.Partitions): // found before
		default:
			report("drained", func(about ...any) {
				c.log.Info("siding: a retry topic that is no longer configured is being drained; delete it when it is empty and no consumer writes to it", about...)
			})
			c.mu.Lock()
			c.drainedTiers[tier.source] = append(slices.Clone(c.drainedTiers[tier.source]), drainedTier{tier.Tier, t.Partitions})
			c.mu.Unlock()
		}
	}
	return failure
}

// extendLanes adds the found tiers to lanes that lack them. Lanes keep running meanwhile.
func (c tierFinder) extendLanes(ctx context.Context) error {
	var lacking []*tierFeed
	topics := map[string][]int32{}
	for _, l := range c.lanesNow() {
		c.mu.Lock()
		found := c.drainedTiers[l.topic]
		c.mu.Unlock()
		for _, t := range found {
			if l.partition < t.partitions && !l.reads(t.Topic) {
				lacking = append(lacking, newTierFeed(l, t.Tier, true))
				topics[t.Topic] = append(topics[t.Topic], l.partition)
			}
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	now, err := c.cluster.Describe(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return err
	}
	inGroup, former := c.cluster.OffsetsOf(ctx, c.cfg.Group, topics), c.cluster.FormerOffsets(ctx, c.cfg.FormerGroups, topics)
	// Of returns the error for a lane that needs it
	logs, _ := c.cluster.Bounds(ctx, topics)
	var extended []*lane
	var failures []error
	for _, f := range lacking {
		at, err := c.tierAt(f, inGroup, former, logs)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		f.start(at)
		f.id = now[f.topic].ID
		if f.join() {
			extended = append(extended, f.lane)
		}
	}
	c.retryPoll.add(extended)
	return joinFew(failures)
}

// unconfiguredTiers returns, by topic, the unconfigured retry topics on which the group or a former
// group has committed offsets. Their sources may be configured or not. If several groups have
// offsets on a topic, the first group counts. An error is about groups that could not be queried.
func (c tierFinder) unconfiguredTiers(ctx context.Context) (map[string]unconfiguredTier, error) {
	configured := map[string]bool{}
	for topic, s := range c.siblings {
		configured[topic] = true
		for _, sibling := range s.Topics() {
			configured[sibling] = true
		}
	}
	left := map[string]unconfiguredTier{}
	var failures []error
	for _, group := range c.groups {
		inGroup, err := c.admin.FetchOffsets(ctx, group)
		if err == nil {
			err = inGroup.Error()
		}
		switch {
		case errors.Is(err, kerr.GroupIDNotFound):
			continue // the group is new, or has expired
		case err != nil:
			failures = append(failures, fmt.Errorf("fetch of the offsets of group %q: %w", group, err))
			continue
		}
		inGroup.KeepFunc(func(o kadm.OffsetResponse) bool { return o.At >= 0 && !configured[o.Topic] })
		topics := slices.Collect(maps.Keys(inGroup))
		// configured sources first: a topic's name may fit several sources
		sources := slices.Collect(maps.Keys(c.siblings))
		for _, topic := range topics {
			if source, ok := c.cfg.Naming.SourceOf(topic); ok && c.siblings[source].Source == "" {
				sources = append(sources, source)
			}
		}
		for _, source := range sources {
			for _, t := range c.cfg.Naming.TiersAmong(topics, source, group) {
				if _, twice := left[t.Topic]; !twice {
					left[t.Topic] = unconfiguredTier{t, source, inGroup}
				}
			}
		}
	}
	return left, errors.Join(failures...)
}

// lagOf is the number of offsets between the committed ones and the end of the topic.
func lagOf(committed kadm.OffsetResponses, ends kadm.ListedOffsets, topic string) (n int64) {
	for p, o := range committed[topic] {
		if end, ok := ends.Lookup(topic, p); ok && end.Err == nil {
			n += max(end.Offset-o.At, 0)
		}
	}
	return n
}

// warnOfFormerGroups logs former groups that still have members: those members and this one would
// run the same records.
func (c tierFinder) warnOfFormerGroups(ctx context.Context) {
	if len(c.cfg.FormerGroups) == 0 {
		return
	}
	groups, err := c.admin.ListGroups(ctx)
	if err != nil {
		c.log.Warn("siding: could not check whether a former group still has members; it must have none", "former_groups", c.cfg.FormerGroups, "error", err)
	}
	for _, former := range c.cfg.FormerGroups {
		switch state := groups[former].State; state {
		case "", "Empty", "Dead":
		default:
			c.log.Error("siding: a former group still has members, and both groups run the same records; stop its consumers", "former_group", former, "state", state)
		}
	}
}

// dropDrained removes a deleted drained tier from its lanes. Its records in memory still run when
// they are due, and are not committed.
func (c tierFinder) dropDrained(topic, source string) {
	lost := 0
	c.mu.Lock()
	c.drainedTiers[source] = slices.DeleteFunc(slices.Clone(c.drainedTiers[source]), func(t drainedTier) bool { return t.Topic == topic })
	c.mu.Unlock()
	for _, l := range c.lanesOn(source) {
		for _, f := range l.tiers() {
			if f.topic == topic && f.drained {
				lost += f.parked.Retire()
				l.mu.Lock()
				f.window.SwitchOff()
				l.mu.Unlock()
				c.retryPauser.close(&f.fetch)
			}
		}
	}
	if lost > 0 {
		c.log.Error("siding: a retry topic was deleted with records that were still parked in it", "retry_topic", topic, "records", lost)
		c.telemetry.countExpired(topic, int64(lost))
	}
	c.wg.Go(func() { c.retryPoll.reread(topic) })
}

// resized records the number of partitions of a drained tier, which a consumer of an older
// configuration may increase. It reports false if the tier is not known.
func (c tierFinder) resized(source, topic string, partitions int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.drainedTiers[source])
	i := slices.IndexFunc(all, func(t drainedTier) bool { return t.Topic == topic })
	if i >= 0 {
		all[i].partitions = max(all[i].partitions, partitions)
		c.drainedTiers[source] = all
	}
	return i >= 0
}

// newTierEnv makes what the lanes' tiers share in this process. connect adds the fetch of evicted
// records.
func (c *Consumer) newTierEnv() *tier.Env {
	return &tier.Env{
		Budget:    tier.NewBudget(c.cfg.MaxParkedBytes, c.resumeTiers),
		MaxDue:    c.cfg.MaxInFlight,
		Retention: c.provisioner.retentionOf,
		Expired:   c.expired,
		Go:        c.wg.Go,
		Throttle:  &c.throttle,
	}
}

// resumeTiers resumes the fetches of tiers that waited for room.
func (c *Consumer) resumeTiers(lanes []tier.Lane) {
	fetches := make([]*fetch, len(lanes))
	for i, l := range lanes {
		fetches[i] = &l.(*tierFeed).fetch // each tier.Lane is a tierFeed
	}
	c.retryPauser.apply(fetches...)
}
