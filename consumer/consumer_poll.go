package consumer

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pollSource dispatches source records from the group client to their lanes. It never waits for a
// lane: a full lane's fetch is paused. Rebalances proceed meanwhile.
func (c *Consumer) pollSource(ctx context.Context) {
	var full []*fetch
	var lost []outOfRange
	for ctx.Err() == nil {
		poll, cancel := c.source.begin(ctx)
		fetches := c.group.PollFetches(poll)
		cancel()
		full, lost = full[:0], lost[:0]
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			l := c.lane(p.Topic, p.Partition)
			if p.Err != nil { // asking a nil error would allocate
				var source *feed
				if l != nil {
					source = &l.source.feed
				}
				if o, ok := isOutOfRange(p.Topic, p.Partition, p.Err); !ok {
					c.fetchError(ctx, source, p.Topic, p.Partition, p.Err)
				} else if o.feed = source; l != nil {
					lost = append(lost, o)
				}
			}
			if l != nil && len(p.Records) > 0 && l.source.takePolled(p.Records, p.HighWatermark) {
				full = append(full, &l.source.fetch)
			}
		})
		c.sourcePauser.apply(full...)
		c.move(lost, c.source)
		c.source.end()
	}
}

// betweenPolls starts a goroutine that runs do in a turn of the source's poll loop, unless the
// consumer stops before.
func (c *Consumer) betweenPolls(do func()) {
	c.wg.Go(func() {
		c.source.betweenPolls(func() {
			if c.stop.Err() == nil {
				do()
			}
		})
	})
}

// fetchError logs an error of a poll, and records it for health. f is the feed that the error is
// about, or nil. kgo retries by itself.
func (c *Consumer) fetchError(ctx context.Context, f *feed, topic string, partition int32, err error) {
	if ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, context.Canceled) {
		return
	}
	var session *kgo.ErrGroupSession
	if errors.As(err, &session) {
		c.recordLog.add(recordKind{event: eventSession, why: session.Err.Error()}, recordExample{offset: -1})
		c.membership.NoteJoinError(session.Err)
		if refusesUs(session.Err) && c.membership.Refused() {
			c.refuse(&refusedError{session.Err})
		}
		return
	}
	if f != nil {
		f.readTrouble(err)
	}
	c.suspectTopic(topic, err)
	c.recordLog.add(recordKind{event: eventFetch, topic: topic, why: err.Error()}, recordExample{partition: partition, offset: -1})
}
