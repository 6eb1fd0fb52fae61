package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Here is what becomes of the lanes of a topic that was deleted and made anew, or that the clients have to learn of again. See topics
// for how that is found.

// recreated sees to a topic that was deleted and made anew.
func (w *topicMonitor) recreated(topic string, u topicUse, id kadm.TopicID) {
	c := w.c
	switch u.kind {
	case usedDrained: // the group has nothing in the new one
		c.log.Info("siding: a retry topic that was drained was deleted and made anew", "retry_topic", topic, "source", u.source)
		c.dropDrained(topic, u.source)
		delete(w.known, topic)
		return
	case usedDLQ:
		c.log.Error("siding: a dead-letter topic was deleted and made anew; the dead letters that it held are gone", "topic", topic)
		return // the producer is told where a copy is refused
	case usedSource:
		c.log.Error("siding: a source topic was deleted and made anew; its lanes start anew, and records that they had not finished are gone with the old one", "topic", topic)
		c.mu.Lock()
		c.ids[topic] = id
		c.recreated[topic] = true
		c.mu.Unlock()
		c.rememberCommitted(topic)
		w.known[topic].handing.Store(false)
		if c.stop.Err() == nil {
			c.lose(func(l *lane) bool { return l.topic == topic })
			w.resubscribe(topic)
		}
		return
	case usedTier:
		c.log.Error("siding: a retry topic was deleted and made anew; its lanes start anew, and the records that were parked in the old one are gone", "topic", topic, "source", u.source)
	}
	w.rereadTopic(topic, u)
}

// rereadTopic has the clients forget what they know of a topic that they read, and start anew on it. A source's lanes are given up in order
// before: what they finished counts, since its log is the one that it was. A consumer that stops leaves it, and commits what is finished.
func (w *topicMonitor) rereadTopic(topic string, u topicUse) {
	c := w.c
	if c.stop.Err() != nil {
		return
	}
	switch k := w.known[topic]; u.kind {
	case usedSource:
		k.handing.Store(true)
		c.wg.Go(func() {
			c.revoke(c.ctx, func(l *lane) bool { return l.topic == topic })
			if k.handing.CompareAndSwap(true, false) { // else it was made anew meanwhile, and that was seen to
				w.resubscribe(topic)
			}
		})
	case usedTier:
		id := k.id
		c.betweenPolls(func() {
			anew := c.restartOn(u.source, topic, id)
			c.wg.Go(func() {
				c.retryPoll.reread(topic)
				c.startLanes(anew)
			})
		})
	case usedDrained:
		c.wg.Go(func() { c.retryPoll.reread(topic) })
	}
}

// resubscribe has the group client forget a source, and learn of it again when the group has taken it back.
func (w *topicMonitor) resubscribe(source string) {
	c := w.c
	if c.stop.Err() != nil {
		return
	}
	now := c.subscription.leave(source, func() {
		c.group.PurgeTopicsFromConsuming(source) // kgo joins again without it
		c.group.ResumeFetchTopics(source)
	})
	if now {
		c.group.AddConsumeTopics(source)
	}
}

// rememberCommitted keeps what the lanes of a source had committed when it was made anew.
func (c *Consumer) rememberCommitted(source string) {
	for _, l := range c.lanesOn(source) {
		l.mu.Lock()
		at := l.source().tracker.committed
		l.mu.Unlock()
		c.mu.Lock()
		c.committedBefore[topicPartition{source, l.partition}] = at
		c.mu.Unlock()
	}
}

// warnStaleOffset says, when a partition of a source that was made anew is first placed, that it goes on where the group stood in the old one.
// Brokers delete a topic's offsets with it, but a commit that was on its way may come after that. The offset is believed even so:
// another member may have got there in the new one.
func (c *Consumer) warnStaleOffset(at topicPartition, committed, position int64, logs bounds) {
	c.mu.Lock()
	old, ok := c.committedBefore[at]
	delete(c.committedBefore, at)
	c.mu.Unlock()
	start, _, err := logs.of(at.topic, at.partition)
	if ok && err == nil && old == committed && position == committed && position > start {
		c.log.Error("siding: a topic that was made anew is read from the offset that the group had committed in the old one; records of the "+
			"new one below it are not consumed. Reset the group's offset to have them", "topic", at.topic, "partition", at.partition,
			"offset", position, "start", start)
	}
}

// lanesOn are the lanes of a source.
func (c *Consumer) lanesOn(source string) []*lane {
	return slices.DeleteFunc(c.lanesNow(), func(l *lane) bool { return l.topic != source })
}

// restartOn replaces the lanes of a source that read a tier under another id than its own; they are not open yet. It runs in a turn
// of the source's poll loop. Records of the old topic may be running, and their offsets must not finish those of the new one, so what the
// lanes have not finished is void: they start anew from their floors.
func (c *Consumer) restartOn(source, tier string, id kadm.TopicID) (anew []*lane) {
	for _, l := range c.lanesOn(source) {
		l.mu.Lock()
		stale := slices.ContainsFunc(l.all(), func(f *feed) bool { return f.topic == tier && f.id != id })
		settled, at := l.positionsLoaded && l.state < laneDraining, l.source().tracker.floor()
		l.mu.Unlock()
		if stale && settled {
			if renewed := c.replacement(l, at); renewed != nil {
				anew = append(anew, renewed)
			}
		}
	}
	return anew
}

// reread has the retry client forget a topic, and read it anew where the feeds are. kgo takes its time to forget, and no lock is held
// meanwhile: a feed that is added then is read when that is over.
func (p *retryPoll) reread(topic string) {
	p.betweenPolls(func() { p.clearing[topic]++ })
	p.client.PurgeTopicsFromConsuming(topic)
	p.client.ResumeFetchTopics(topic)
	p.betweenPolls(func() {
		if p.clearing[topic]--; p.clearing[topic] > 0 {
			return
		}
		delete(p.clearing, topic)
		start := map[int32]kgo.Offset{}
		for at, f := range p.byFeed {
			if at.topic != topic {
				continue
			}
			if f.retired.Load() {
				delete(p.byFeed, at)
				continue
			}
			f.lane.mu.Lock()
			start[at.partition] = kgo.NewOffset().At(f.tracker.next)
			f.lane.mu.Unlock()
		}
		if len(start) > 0 {
			p.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: start})
		}
	})
}
