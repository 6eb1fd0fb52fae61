package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// A position may lie outside of its log. Below the start, retention took records before they were
// read: the lane goes on at the start, and the log has how many. Beyond the end, the log is another
// one than it was (an unclean election, a restored cluster, a recreated topic): what was read and
// committed of it means nothing any more, and the lane starts again at the log's start. kgo's own
// reset would do either in silence, and what it reads again below the old position would look like
// repetitions.

// committedOf asks for the group's offsets on the sources of lanes.
func (c *Consumer) committedOf(ctx context.Context, lanes []*lane) func(*lane) (kgo.EpochOffset, error) {
	ctx, cancel := context.WithTimeout(ctx, offsetsTimeout)
	defer cancel()
	inGroup := c.cluster.OffsetsOf(ctx, c.groups.own(), sourcesOf(lanes))
	return func(l *lane) (kgo.EpochOffset, error) { return inGroup.Of(l.topic, l.partition) }
}

// clampToLog returns where a partition is to be read from whose committed offset is at, and what
// counts as committed of it. A partition whose log nobody answers for, since it has no leader, is
// believed: it must not keep the others from their start.
func (c *Consumer) clampToLog(b cluster.Bounds, topic string, partition int32, at int64) (position, committed int64) {
	start, end, err := b.Of(topic, partition)
	switch {
	case err != nil:
		c.log.Warn("siding: a committed offset could not be compared with its log", "topic", topic, "partition", partition, "committed", at, "error", err)
		return at, at
	case at > end:
		c.log.Error("siding: the committed offset lies beyond the log's end, so the log is not the one that it was; reading it from its start",
			"topic", topic, "partition", partition, "committed", at, "start", start, "end", end)
		return start, -1
	case at < start:
		c.expired(topic, partition, start-at)
		return start, at
	}
	return at, at
}

// expired says that retention took records before they were read.
func (c *Consumer) expired(topic string, partition int32, n int64) {
	c.log.Error("siding: records were deleted by retention before they were read", "topic", topic, "partition", partition, "records_at_most", n)
	c.countExpired(topic, n)
}

// offsetsTimeout bounds the look at the logs of all positions that a poll found outside, which
// takes part of the loop's turn.
const offsetsTimeout = 5 * time.Second
