package consumer

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Where a partition without a committed offset starts is asked of its leader. One that has none (it was just added, or its broker is
// down) is not to keep the others from their start: kgo is given an offset that is not read from, since the partition is paused, and
// the right one when it is known.

// startOf is where a partition without a committed offset starts.
func (c *Consumer) startOf(ctx context.Context, topic string, partition int32) (int64, error) {
	if c.isAnew(topic) {
		b, err := c.bounds(ctx, topic)
		if err != nil {
			return 0, err
		}
		start, _, err := b.of(topic, partition)
		return start, err
	}
	s := c.starts(ctx, topic)
	return s.of(topic, partition)
}

// postpone has the fetch of a lane pause whose start is not known. It returns the offset for kgo.
func (c *Consumer) postpone(l *lane) kgo.Offset {
	l.mu.Lock()
	if l.state == laneStarting {
		l.why = "waiting to learn where its log starts"
	}
	l.source().full.Store(true)
	l.mu.Unlock()
	c.sourceGate.sync(l.source())
	return kgo.NewOffset().At(0)
}

// seek finds the start of a lane that was postponed, and opens the lane.
func (c *Consumer) seek(l *lane) {
	c.retry(c.ctx, "finding where a partition starts", func() error {
		if !l.isStarting() {
			return nil
		}
		at, err := c.startOf(c.ctx, l.topic, l.partition)
		if err != nil {
			return err
		}
		begun := make(chan bool, 1)
		c.source.do(func() { begun <- c.beginAt(l, at) })
		select {
		case ok := <-begun:
			if !ok {
				return errors.New("the client has not been assigned " + l.String() + " yet")
			}
		case <-l.gone:
		case <-c.ctx.Done():
		}
		return nil
	})
	c.open([]*lane{l})
}

// beginAt has a lane that was postponed begin at an offset. It runs on the source's poll loop, and reports false where kgo does not know
// the partition as assigned yet: what it is told of one that is not, it ignores.
func (c *Consumer) beginAt(l *lane, at int64) bool {
	l.mu.Lock()
	waits := l.state == laneStarting && !l.placed
	l.mu.Unlock()
	if waits {
		c.setSource(l, at)
		if got, ok := c.group.CommittedOffsets()[l.topic][l.partition]; !ok || got.Offset != at {
			return false
		}
	}
	l.mu.Lock()
	if l.state == laneStarting && !l.placed {
		l.source().tracker, l.source().epoch = newTracker(at, -1), -1
	}
	l.source().full.Store(false)
	l.mu.Unlock()
	c.sourceGate.sync(l.source())
	return true
}
