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

	"github.com/sidingkafka/siding/retrytopics"
)

// drainedTier is a retry topic that is not configured, but belongs to the group: a tier that was
// taken out of the configuration, or one of a name that the group had before. Its lanes drain it:
// they run what it holds when it is due, and what fails again goes on by the configured tiers.
// Nothing new goes into it. Its offsets are committed, and kept alive, like any other's. See
// DESIGN.md, "Drained tiers".
type drainedTier struct {
	retrytopics.Tier
	partitions int32 // it may have fewer than its source, which grew meanwhile
}

// unconfiguredTier is a retry topic that is not configured, on which the group has committed
// offsets.
type unconfiguredTier struct {
	retrytopics.Tier
	source    string
	committed kadm.OffsetResponses // of the group, by the name under which it has any on this topic
}

// drainedTierPollEvery is how often a running consumer looks for tiers that the group has come to
// have: by a member that runs with another configuration, a canary say, and may leave records
// behind. It looks on each assignment, too.
const drainedTierPollEvery = time.Minute

// drainedTierLoop looks for tiers until ctx ends, and adds them to the lanes that run.
func (c *Consumer) drainedTierLoop(ctx context.Context) {
	t := time.NewTicker(drainedTierPollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-c.newLanes:
		}
		if err := errors.Join(c.findDrainedTiers(ctx), c.extendLanes(ctx)); err != nil && ctx.Err() == nil {
			c.throttle.Once("inherit", time.Minute, func() {
				c.log.Warn("siding: retry topics that are not configured could not all be looked for, and are again within a minute", "error", err)
			})
		}
	}
}

// findDrainedTiers finds what the group inherits: every tier of a configured source that it, or a
// group that it was before, has a committed offset on. What is left of sources that are not
// configured any more is only reported. An error says what could not be looked at; the rest is
// found even so.
func (c *Consumer) findDrainedTiers(ctx context.Context) error {
	left, failure := c.unconfiguredTiers(ctx)
	if len(left) == 0 {
		return failure
	}
	now, err := c.cluster.Describe(ctx, keys(left))
	if err != nil {
		return errors.Join(failure, err)
	}
	known := map[string]bool{}
	c.mu.Lock()
	for _, tiers := range c.drainedTiers {
		for _, t := range tiers {
			known[t.Topic] = true
		}
	}
	c.mu.Unlock()
	ends := sync.OnceValues(func() (kadm.ListedOffsets, error) { return c.admin.ListEndOffsets(ctx, keys(left)...) })
	for _, topic := range slices.Sorted(maps.Keys(left)) {
		tier, t := left[topic], now[topic]
		tell := func(state string, log func(about ...any)) {
			if c.unconfiguredLogged[topic] == state { // a consumer looks once a minute
				return
			}
			c.unconfiguredLogged[topic] = state
			listed, err := ends() // how much there is, is for people
			if err != nil {
				c.log.Debug("siding: list of end offsets", "error", err)
			}
			log("retry_topic", topic, "source", tier.source, "records_at_most", lagOf(tier.committed, listed, topic))
		}
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition): // deleted: nothing is left to do
		case t.Err != nil:
			tell("unreadable", func(about ...any) {
				c.log.Error("siding: a retry topic of this group cannot be read; what it holds stays there until it can", append(about, "error", t.Err)...)
			})
		case c.siblings[tier.source].Source == "":
			tell("without a source", func(about ...any) {
				c.log.Warn("siding: a retry topic of this group belongs to a source that is not configured; what it holds is not run: "+
					"put the source back into Topics until it is empty, then delete it", about...)
			})
		case known[topic]:
			c.resized(tier.source, topic, t.Partitions)
		default:
			tell("drained", func(about ...any) {
				c.log.Info("siding: a retry topic that is not configured any more is drained; delete it when no consumer writes to it and it is empty", about...)
			})
			c.mu.Lock()
			c.drainedTiers[tier.source] = append(slices.Clone(c.drainedTiers[tier.source]), drainedTier{tier.Tier, t.Partitions})
			c.mu.Unlock()
		}
	}
	return failure
}

// extendLanes adds the tiers that were found to the lanes that lack them. A lane goes on meanwhile,
// with what it holds.
func (c *Consumer) extendLanes(ctx context.Context) error {
	var lacking []*tierFeed
	topics := map[string][]int32{}
	for _, l := range c.lanesNow() {
		c.mu.Lock()
		found := c.drainedTiers[l.topic]
		c.mu.Unlock()
		for _, t := range found {
			if l.partition < t.partitions && !l.reads(t.Topic) {
				lacking = append(lacking, newDrainedFeed(l, t))
				topics[t.Topic] = append(topics[t.Topic], l.partition)
			}
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	now, err := c.cluster.Describe(ctx, keys(topics))
	if err != nil {
		return err
	}
	inGroup, former := c.cluster.OffsetsOf(ctx, c.groups.own(), topics), c.cluster.FormerOffsets(ctx, c.groups.former(), topics)
	logs, _ := c.cluster.Bounds(ctx, keys(topics)...) // who needs it is told
	var extended []*lane
	var failures []error
	for _, f := range lacking {
		at, epoch, err := c.tierAt(f, inGroup, former, logs)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		f.tracker, f.epoch, f.id = at, epoch, now[f.topic].ID
		if f.join() {
			extended = append(extended, f.lane)
		}
	}
	c.retryPoll.add(extended)
	return joinFew(failures)
}

// unconfiguredTiers are, by topic, the retry topics that are not configured, of configured sources
// and of others, on which the group or one that it was before has committed offsets. The first of
// these groups counts. An error is about groups that could not be asked.
func (c *Consumer) unconfiguredTiers(ctx context.Context) (map[string]unconfiguredTier, error) {
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
			continue // it is new, or has been away for so long that it is forgotten
		case err != nil:
			failures = append(failures, fmt.Errorf("fetch of the offsets of group %q: %w", group, err))
			continue
		}
		inGroup.KeepFunc(func(o kadm.OffsetResponse) bool { return o.At >= 0 && !configured[o.Topic] })
		topics := keys(inGroup)
		sources := keys(c.siblings) // these first: a name may read as a tier of another source too
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

// lagOf is how many records of a topic lie behind the committed offsets.
func lagOf(committed kadm.OffsetResponses, ends kadm.ListedOffsets, topic string) (n int64) {
	for p, o := range committed[topic] {
		if end, ok := ends.Lookup(topic, p); ok && end.Err == nil {
			n += max(end.Offset-o.At, 0)
		}
	}
	return n
}

// warnOfFormerGroups says which former groups still have members. Those and this one would run the
// same records.
func (c *Consumer) warnOfFormerGroups(ctx context.Context) {
	if len(c.cfg.FormerGroups) == 0 {
		return
	}
	groups, err := c.admin.ListGroups(ctx)
	if err != nil {
		c.log.Warn("siding: it is not known whether a former group still has members; it must not", "former_groups", c.cfg.FormerGroups, "error", err)
	}
	for _, former := range c.cfg.FormerGroups {
		switch state := groups[former].State; state {
		case "", "Empty", "Dead":
		default:
			c.log.Error("siding: a former group still has members: both run the same records; stop its consumers", "former_group", former, "state", state)
		}
	}
}

// dropDrained takes a drained tier off its lanes: it is not there any more. What they have in
// memory of it runs when it is due, and is not committed.
func (c *Consumer) dropDrained(topic, source string) {
	lost := 0
	c.mu.Lock()
	c.drainedTiers[source] = slices.DeleteFunc(slices.Clone(c.drainedTiers[source]), func(t drainedTier) bool { return t.Topic == topic })
	c.mu.Unlock()
	for _, l := range c.lanesOn(source) {
		for _, f := range l.tiers() {
			if f.topic == topic && f.drained {
				lost += f.parked.Retire()
				c.retryPauser.close(&f.fetch)
			}
		}
	}
	if lost > 0 {
		c.log.Error("siding: records that were parked in a retry topic are gone with it", "retry_topic", topic, "records", lost)
		c.countExpired(topic, int64(lost))
	}
	c.wg.Go(func() { c.retryPoll.reread(topic) })
}

// resized notes how many partitions a drained tier has: consumers of an older configuration may
// make it grow.
func (c *Consumer) resized(source, topic string, partitions int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.drainedTiers[source])
	for i := range all {
		if all[i].Topic == topic {
			all[i].partitions = max(all[i].partitions, partitions)
		}
	}
	c.drainedTiers[source] = all
}
