package consumer

import "github.com/sidingkafka/siding/consumer/internal/cluster"

// rememberCommitted keeps what the lanes of a source had committed when it was made anew.
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

// warnStaleOffset says, when a partition of a source that was made anew is first placed, that it goes on where the group stood in the old one.
// Brokers delete a topic's offsets with it, but a commit that was on its way may come after that. The offset is believed even so:
// another member may have got there in the new one.
func (c *Consumer) warnStaleOffset(at topicPartition, committed, position int64, logs cluster.Bounds) {
	c.mu.Lock()
	old, ok := c.committedBefore[at]
	delete(c.committedBefore, at)
	c.mu.Unlock()
	start, _, err := logs.Of(at.topic, at.partition)
	if ok && err == nil && old == committed && position == committed && position > start {
		c.log.Error("siding: a topic that was made anew is read from the offset that the group had committed in the old one; records of the "+
			"new one below it are not consumed. Reset the group's offset to have them", "topic", at.topic, "partition", at.partition,
			"offset", position, "start", start)
	}
}

// isRecreated reports whether a source was deleted and made anew while it was consumed.
func (c *Consumer) isRecreated(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recreated[topic]
}

// topicUse is what a topic is to the consumer.
type topicUse struct {
	kind   useKind
	source string
}

type useKind uint8

const (
	usedSource useKind = iota
	usedTier
	usedDLQ
	usedDrained
)

func (k useKind) String() string {
	return [...]string{"source topic", "retry topic", "dead-letter topic", "retry topic that is drained"}[k]
}

// uses are the topics that the consumer needs.
func (c *Consumer) uses() map[string]topicUse {
	all := map[string]topicUse{}
	c.mu.Lock()
	for source, tiers := range c.drainedTiers {
		for _, t := range tiers {
			all[t.Topic] = topicUse{usedDrained, source}
		}
	}
	c.mu.Unlock()
	for source, s := range c.siblings {
		for _, t := range s.Tiers {
			all[t.Topic] = topicUse{usedTier, source}
		}
		all[s.DLQ] = topicUse{usedDLQ, source}
		all[source] = topicUse{usedSource, source}
	}
	return all
}
