package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/topicmonitor"
)

// topicOwner is the consumer's side of its topic monitor: it applies changes of topics to lanes and
// clients. See DESIGN.md, "Recreated topics".
type topicOwner struct{ c *Consumer }

// Uses returns the topics that the consumer needs.
func (o topicOwner) Uses() map[string]topicmonitor.Use {
	c := o.c
	all := map[string]topicmonitor.Use{}
	c.mu.Lock()
	for source, tiers := range c.drainedTiers {
		for _, t := range tiers {
			all[t.Topic] = topicmonitor.Use{Kind: topicmonitor.Drained, Source: source}
		}
	}
	c.mu.Unlock()
	for source, s := range c.siblings {
		for _, t := range s.Tiers {
			all[t.Topic] = topicmonitor.Use{Kind: topicmonitor.Tier, Source: source}
		}
		all[s.DLQ] = topicmonitor.Use{Kind: topicmonitor.DLQ, Source: source}
		all[s.Ledger] = topicmonitor.Use{Kind: topicmonitor.Ledger, Source: source, Optional: !c.cfg.policyOf(source).NoteDiscards}
		all[source] = topicmonitor.Use{Kind: topicmonitor.Source, Source: source}
	}
	return all
}

// Describe queries a broker about topics.
func (o topicOwner) Describe(ctx context.Context, topics []string) (map[string]cluster.Topic, error) {
	now, err := o.c.cluster.Describe(ctx, topics)
	if err != nil && ctx.Err() == nil {
		o.c.throttle.Once("poll of topics", time.Minute, func() { o.c.log.Warn("siding: polling the topics failed", "error", err) })
	}
	return now, err
}

// Sized handles a number of partitions, which may have changed.
func (o topicOwner) Sized(t *topicmonitor.Topic, before int32) {
	o.c.provisioner.partitions.Store(t.Name, t.Size)
	switch t.Use.Kind {
	case topicmonitor.Ledger:
		// A lane starts without its ledger's partition, so nothing else would try again.
		if n, ok := o.c.provisioner.partitionsOf(t.Use.Source); ok && before > 0 && t.Size < n {
			o.grow(t.Name, t.Use.Source)
		}
	case topicmonitor.Source:
		if t.Size > before {
			// in the classic protocol, the group's leader assigns the new partitions
			o.c.group.ForceMetadataRefresh()
		}
	case topicmonitor.Drained:
		tierFinder{o.c}.resized(t.Use.Source, t.Name, t.Size)
	}
}

// grow has the siblings of a source provisioned, since its ledger has fewer partitions.
func (o topicOwner) grow(ledger, source string) {
	c := o.c
	c.throttle.Once("growth of "+ledger, time.Minute, func() {
		c.wg.Go(func() {
			if err := c.provisioner.ensure(c.ctx, []string{source}); err != nil && c.ctx.Err() == nil {
				c.log.Error("siding: a ledger has fewer partitions than its source, so that discarded records cannot be noted there; siding tries again",
					"ledger", ledger, "source", source, "error", err)
			}
		})
	})
}

// Found resumes reading a topic that was missing.
func (o topicOwner) Found(t *topicmonitor.Topic) {
	o.c.log.Info("siding: a missing topic exists again", "topic", t.Name)
	o.c.reader(t.Name).ResumeFetchTopics(t.Name)
}

// Missing handles a topic that does not exist. It does not create the topic: the operator who
// deleted it may be about to.
func (o topicOwner) Missing(t *topicmonitor.Topic) {
	c := o.c
	switch t.Use.Kind {
	case topicmonitor.Drained:
		c.log.Info("siding: a drained retry topic was deleted", "retry_topic", t.Name, "source", t.Use.Source)
		tierFinder{c}.dropDrained(t.Name, t.Use.Source)
		return
	case topicmonitor.Source:
		c.log.Error("siding: a source topic no longer exists; its lanes wait until it is recreated, other lanes are not affected. "+
			"If that will not happen, remove it from Topics", "topic", t.Name)
	default:
		about := []any{"topic", t.Name, "used_as", t.Use.Kind.String(), "source", t.Use.Source}
		if t.Size > 0 {
			c.log.Error("siding: a topic was deleted with its records; lanes that need it wait until it is recreated. "+creationHint, about...)
		} else {
			c.log.Error("siding: a topic does not exist; lanes that need it wait until it is created. "+creationHint, about...)
		}
	}
	o.c.reader(t.Name).PauseFetchTopics(t.Name)
}

const creationHint = "A consumer that starts with Provision.Mode Create creates it; with Verify or Off, create it with as many partitions as its source has"

// Recreated handles a topic that was deleted and exists again.
func (o topicOwner) Recreated(t *topicmonitor.Topic) {
	c := o.c
	switch t.Use.Kind {
	case topicmonitor.Drained:
		c.log.Info("siding: a drained retry topic was deleted and recreated", "retry_topic", t.Name, "source", t.Use.Source)
		tierFinder{c}.dropDrained(t.Name, t.Use.Source)
	case topicmonitor.DLQ: // the producer learns of it when a copy is refused
		c.log.Error("siding: a dead-letter topic was deleted and recreated; its dead letters are gone", "topic", t.Name)
	case topicmonitor.Ledger:
		c.log.Error("siding: a ledger was deleted and recreated; what it had about dead letters and discarded records is gone", "topic", t.Name)
	case topicmonitor.Source:
		c.log.Error("siding: a source topic was deleted and recreated; its lanes restart, and their unfinished records are gone", "topic", t.Name)
		c.provisioner.ids.Store(t.Name, t.ID)
		c.mu.Lock()
		c.recreated[t.Name] = true
		c.mu.Unlock()
		c.rememberCommitted(t.Name)
		t.Revoking.Store(false)
		if c.stop.Err() == nil {
			c.lose(func(l *lane) bool { return l.topic == t.Name })
			o.resubscribe(t.Name)
		}
	case topicmonitor.Tier:
		c.log.Error("siding: a retry topic was deleted and recreated; its lanes restart, and the records parked in the old topic are gone",
			"topic", t.Name, "source", t.Use.Source)
		o.Reread(t)
	}
}

// Reread makes the clients drop their state of a topic, and start again on it. It first revokes a
// source's lanes in order: their finished records count, because the log is the same. A stopping
// consumer skips this, and commits what is finished.
func (o topicOwner) Reread(t *topicmonitor.Topic) {
	c := o.c
	if c.stop.Err() != nil {
		return
	}
	switch t.Use.Kind {
	case topicmonitor.Source:
		t.Revoking.Store(true)
		c.wg.Go(func() {
			c.revoke(c.ctx, "their source is read again", func(l *lane) bool { return l.topic == t.Name })
			// otherwise it was recreated meanwhile, and Recreated handled it
			if t.Revoking.CompareAndSwap(true, false) {
				o.resubscribe(t.Name)
			}
		})
	case topicmonitor.Tier:
		source, id := t.Use.Source, t.ID
		c.betweenPolls(func() {
			lanes := o.restart(source, t.Name, id)
			c.wg.Go(func() {
				c.retryPoll.reread(t.Name)
				c.startLanes(lanes)
			})
		})
	case topicmonitor.Drained:
		c.wg.Go(func() { c.retryPoll.reread(t.Name) })
	}
}

// restart replaces the lanes of a source that read a tier under another id; the caller starts the
// new lanes. It runs in a turn of the source's poll loop. Records of the old topic may be running,
// and their offsets must not finish those of the new one. So the lanes' unfinished work is void,
// and they restart from their floors.
func (o topicOwner) restart(source, tier string, id kadm.TopicID) (lanes []*lane) {
	for _, l := range o.c.lanesOn(source) {
		l.mu.Lock()
		stale := slices.ContainsFunc(l.tiers(), func(f *tierFeed) bool { return f.topic == tier && f.id != id })
		placed, at := l.positionsLoaded && l.state < laneDraining, l.restart()
		l.mu.Unlock()
		if stale && placed {
			if renewed := o.c.replacement(l, at); renewed != nil {
				lanes = append(lanes, renewed)
			}
		}
	}
	return lanes
}

// resubscribe makes the group client drop a source, and subscribe again once the group has taken
// the partitions back.
func (o topicOwner) resubscribe(source string) {
	c := o.c
	if c.stop.Err() != nil {
		return
	}
	now := c.subscription.Leave(source, func() {
		c.group.PurgeTopicsFromConsuming(source) // kgo joins again without it
		c.group.ResumeFetchTopics(source)
	})
	if now {
		c.group.AddConsumeTopics(source)
	}
}
