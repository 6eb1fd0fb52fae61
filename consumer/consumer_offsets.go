package consumer

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// A position may be outside of its log. Below the start, retention deleted records before they were
// read: the lane continues at the start, and siding logs their number. Beyond the end, the log was
// replaced (an unclean election, a restored cluster, a recreated topic). Offsets of the old log
// mean nothing in the new one, so the lane restarts at the log's start. kgo's own reset would do
// both silently, and records read again below the old position would look like duplicates.

// committedOf fetches the group's offsets on the sources of lanes.
func (c *Consumer) committedOf(ctx context.Context, lanes []*lane) func(*lane) (cluster.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, offsetsTimeout)
	defer cancel()
	inGroup := c.cluster.OffsetsOf(ctx, c.cfg.Group, sourcesOf(lanes))
	return func(l *lane) (cluster.Offset, error) { return inGroup.Of(l.topic, l.partition) }
}

// clampToLog returns where a partition with a committed offset is read from, and what counts as
// committed. It trusts the offset if the log's bounds are unknown, for example while the partition
// has no leader. Such a partition must not keep others from their start.
func (c *Consumer) clampToLog(b cluster.Bounds, topic string, partition int32, at int64) (position, committed int64) {
	start, end, err := b.Of(topic, partition)
	switch {
	case err != nil:
		c.log.Warn("siding: could not check a committed offset against the bounds of its log; it is trusted", "topic", topic, "partition", partition, "committed", at, "error", err)
		return at, at
	case at > end:
		c.log.Error("siding: the committed offset is beyond the log's end, so the log was replaced; reading it from its start",
			"topic", topic, "partition", partition, "committed", at, "start", start, "end", end)
		return start, -1
	case at < start:
		c.expired(topic, partition, start-at)
		return start, at
	}
	return at, at
}

// expired logs and counts records that retention deleted before they were read.
func (c *Consumer) expired(topic string, partition int32, n int64) {
	c.log.Error("siding: records were deleted by retention before they were read", "topic", topic, "partition", partition, "records_at_most", n)
	c.telemetry.countExpired(topic, n)
}

// offsetsTimeout bounds a query of the bounds of logs: how long a silent leader delays the others
// that are asked with it.
const offsetsTimeout = 5 * time.Second
