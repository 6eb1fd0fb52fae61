package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/topicmonitor"
)

// topicOwner is the consumer to the monitor of its topics: what a change of a topic means for lanes
// and clients.
// See DESIGN.md, "Recreated topics".
type topicOwner struct{ c *Consumer }

// Uses are the topics that the consumer needs.
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
		all[source] = topicmonitor.Use{Kind: topicmonitor.Source, Source: source}
	}
	return all
}

// Describe asks a broker about topics.
func (o topicOwner) Describe(ctx context.Context, topics []string) (map[string]cluster.Topic, error) {
	return o.c.cluster.Describe(ctx, topics)
}

// PollFailed logs the error of a poll that no broker answered.
func (o topicOwner) PollFailed(err error) {
	o.c.throttle.Once("look at topics", time.Minute, func() { o.c.log.Warn("siding: the topics could not be looked at", "error", err) })
}

// Sized takes how many partitions a topic has.
func (o topicOwner) Sized(t *topicmonitor.Topic, before int32) {
	switch t.Use.Kind {
	case topicmonitor.Source:
		if t.Size > before {
			// under the classic protocol the group's leader has the new partitions assigned
			o.c.group.ForceMetadataRefresh()
		}
	case topicmonitor.Drained:
		o.c.resized(t.Use.Source, t.Name, t.Size)
	}
}

// Found has a topic read that was missing.
func (o topicOwner) Found(t *topicmonitor.Topic) {
	o.c.log.Info("siding: a topic that was missing is there", "topic", t.Name)
	o.reader(t.Name).ResumeFetchTopics(t.Name)
}

// Missing sees to a topic that does not exist. It is not made from here: the operator who deleted
// it may be about to.
func (o topicOwner) Missing(t *topicmonitor.Topic) {
	c := o.c
	switch t.Use.Kind {
	case topicmonitor.Drained:
		c.log.Info("siding: a retry topic that was drained was deleted", "retry_topic", t.Name, "source", t.Use.Source)
		c.dropDrained(t.Name, t.Use.Source)
		return
	case topicmonitor.Source:
		c.log.Error("siding: a source topic does not exist any more; its lanes wait until it is made again, the others go on. "+
			"If it is not to come back, take it out of Topics", "topic", t.Name)
	default:
		about := []any{"topic", t.Name, "used_as", t.Use.Kind.String(), "source", t.Use.Source}
		if t.Size > 0 {
			c.log.Error("siding: a topic was deleted, and what it held is gone; lanes that need it wait until it is made again. "+creationHint, about...)
		} else {
			c.log.Error("siding: a topic does not exist; lanes that need it wait until it is made. "+creationHint, about...)
		}
	}
	o.reader(t.Name).PauseFetchTopics(t.Name)
}

const creationHint = "A consumer that starts with Provision.Mode Create makes it; under Verify and Off, make it with as many partitions as its source has"

// Recreated sees to a topic that was deleted and recreated.
func (o topicOwner) Recreated(t *topicmonitor.Topic) {
	c := o.c
	switch t.Use.Kind {
	case topicmonitor.Drained:
		c.log.Info("siding: a retry topic that was drained was deleted and made anew", "retry_topic", t.Name, "source", t.Use.Source)
		c.dropDrained(t.Name, t.Use.Source)
	case topicmonitor.DLQ: // the producer is told where a copy is refused
		c.log.Error("siding: a dead-letter topic was deleted and made anew; the dead letters that it held are gone", "topic", t.Name)
	case topicmonitor.Source:
		c.log.Error("siding: a source topic was deleted and made anew; its lanes start anew, and records that they had not finished are gone with the old one", "topic", t.Name)
		c.provisioner.setID(t.Name, t.ID)
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
		c.log.Error("siding: a retry topic was deleted and made anew; its lanes start anew, and the records that were parked in the old one are gone",
			"topic", t.Name, "source", t.Use.Source)
		o.Reread(t)
	}
}

// Reread has the clients forget what they know of a topic that they read, and start again on it. A
// source's lanes are revoked in order before: what they finished counts, since its log is the one
// that it was. A consumer that stops leaves it, and commits what is finished.
func (o topicOwner) Reread(t *topicmonitor.Topic) {
	c := o.c
	if c.stop.Err() != nil {
		return
	}
	switch t.Use.Kind {
	case topicmonitor.Source:
		t.Revoking.Store(true)
		c.wg.Go(func() {
			c.revoke(c.ctx, func(l *lane) bool { return l.topic == t.Name })
			// else it was recreated meanwhile, and that was seen to
			if t.Revoking.CompareAndSwap(true, false) {
				o.resubscribe(t.Name)
			}
		})
	case topicmonitor.Tier:
		source, id := t.Use.Source, t.ID
		c.betweenPolls(func() {
			anew := o.restart(source, t.Name, id)
			c.wg.Go(func() {
				c.retryPoll.reread(t.Name)
				c.startLanes(anew)
			})
		})
	case topicmonitor.Drained:
		c.wg.Go(func() { c.retryPoll.reread(t.Name) })
	}
}

// restart replaces the lanes of a source that read a tier under another id than its own; they are
// not open yet. It runs in a turn of the source's poll loop. Records of the old topic may be
// running, and their offsets must not finish those of the new one, so what the lanes have not
// finished is void: they start anew from their floors.
func (o topicOwner) restart(source, tier string, id kadm.TopicID) (anew []*lane) {
	for _, l := range o.c.lanesOn(source) {
		l.mu.Lock()
		stale := slices.ContainsFunc(l.tiers(), func(f *tierFeed) bool { return f.topic == tier && f.id != id })
		placed, at := l.positionsLoaded && l.state < laneDraining, l.source.tracker.Floor()
		l.mu.Unlock()
		if stale && placed {
			if renewed := o.c.replacement(l, at); renewed != nil {
				anew = append(anew, renewed)
			}
		}
	}
	return anew
}

// resubscribe has the group client forget a source, and learn of it again when the group has taken
// it back.
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

// refused has a topic polled soon, and not read until then, if that may be what the error of a
// fetch is about: kgo would ask for it again at once, and be refused again.
func (o topicOwner) refused(topic string, err error) {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) {
		o.reader(topic).PauseFetchTopics(topic)
		o.c.topics.Suspect(topic, err)
	}
}

// reader is the client that reads a topic.
func (o topicOwner) reader(topic string) *kgo.Client {
	if o.c.siblings[topic].Source != "" {
		return o.c.group
	}
	return o.c.retryCl
}
