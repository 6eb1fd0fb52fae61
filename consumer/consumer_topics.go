package consumer

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// rememberCommitted keeps the committed offsets of a recreated source's lanes.
func (c *Consumer) rememberCommitted(source string) {
	for _, l := range c.lanesOn(source) {
		l.mu.Lock()
		at := l.source.tracker.Committed
		l.mu.Unlock()
		c.mu.Lock()
		c.committedBefore[topicPartition{source, l.partition}] = at
		c.mu.Unlock()
	}
}

// warnStaleOffset logs that a partition of a recreated source continues at the offset that the
// group had committed in the deleted topic. Brokers delete a topic's offsets with it, but a commit
// in flight may arrive later. siding trusts the offset nevertheless: another member may have
// reached it in the new topic.
func (c *Consumer) warnStaleOffset(at topicPartition, committed, position int64, logs cluster.Bounds) {
	c.mu.Lock()
	old, ok := c.committedBefore[at]
	delete(c.committedBefore, at)
	c.mu.Unlock()
	start, _, err := logs.Of(at.topic, at.partition)
	if ok && err == nil && old == committed && position == committed && position > start {
		c.log.Error("siding: a recreated topic is read from the offset that the group had committed in the old one; lower offsets of the new one "+
			"are not consumed. Reset the group's offset to consume them", "topic", at.topic, "partition", at.partition,
			"offset", position, "start", start)
	}
}

// isFromBefore reports whether an offset is the one that the group had committed in a deleted
// topic.
func (c *Consumer) isFromBefore(at topicPartition, offset int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.committedBefore[at]
	return ok && old == offset
}

// isRecreated reports whether a source was deleted and recreated while it was consumed.
func (c *Consumer) isRecreated(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recreated[topic]
}

// suspectTopic handles a fetch error that a changed topic id may explain. It pauses the topic until
// the monitor has polled it: kgo would otherwise fetch again at once, and be refused again.
func (c *Consumer) suspectTopic(topic string, err error) {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) {
		c.reader(topic).PauseFetchTopics(topic)
		c.topics.Suspect(topic, err)
	}
}

// reader returns the client that reads a topic.
func (c *Consumer) reader(topic string) *kgo.Client {
	if c.siblings[topic].Source != "" {
		return c.group
	}
	return c.retryCl
}
