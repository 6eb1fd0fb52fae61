package consumer

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// newLane makes the lane of an assigned partition; the caller holds the lock of the lanes.
func newLane(c *Consumer, topic string, partition int32, member string) *lane {
	l := &lane{
		c:         c,
		topic:     topic,
		partition: partition,
		topicID:   c.provisioner.id(topic),
		member:    member,
		siblings:  c.siblings[topic],
		policy:    c.policies[topic],
		guard:     c.guards.of[topic],
		log:       c.log.With("topic", topic, "partition", partition),
		begin:     -1,
		since:     time.Now(),
		why:       "waiting for its offsets",
		units:     map[*unit]struct{}{},
		changed:   make(chan struct{}, 1),
		stopping:  make(chan struct{}),
		gone:      make(chan struct{}),
	}
	if c.cfg.Order == OrderKey || c.cfg.HoldKeys {
		l.keys = map[keyHash]*keyQueue{}
	}
	if c.cfg.HoldKeys {
		l.held = newHeldState(c.cfg.MaxHeld)
	}
	l.abandon, l.abandoned = context.WithCancelCause(context.Background())
	copyLane{l}.initCopies()
	l.source = newSourceFeed(l)
	l.source.says = commitmark.OfRelease(c.cfg.Version)
	var tiers []*tierFeed
	for _, t := range l.siblings.Tiers {
		tiers = append(tiers, newTierFeed(l, t, false))
	}
	for _, t := range c.drainedTiers[topic] {
		if partition < t.partitions {
			tiers = append(tiers, newTierFeed(l, t.Tier, true))
		}
	}
	l.setTiers(tiers)
	l.hold.Store(true)
	return l
}
