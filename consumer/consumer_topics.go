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

// warnStaleOffset says, when a partition of a source that was made anew is first placed, that it
// goes on where the group stood in the old one. Brokers delete a topic's offsets with it, but a
// commit that was on its way may come after that. The offset is believed even so: another member
// may have got there in the new one.
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
