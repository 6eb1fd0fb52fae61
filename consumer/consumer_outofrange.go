package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// outOfRange is a poll's error about a position. See DESIGN.md, "Positions outside of the log".
type outOfRange struct {
	at   topicPartition
	loss *kgo.ErrDataLoss // nil: the fetch was refused
	feed *feed            // which was read there
	tier *tierFeed        // nil: the position is a source's
}

// isOutOfRange reports whether err is about a position.
func isOutOfRange(topic string, partition int32, err error) (outOfRange, bool) {
	o := outOfRange{at: topicPartition{topic, partition}}
	if errors.As(err, &o.loss) {
		return o, true
	}
	return o, errors.Is(err, kerr.OffsetOutOfRange)
}

// move moves positions of the sources, or positions of tiers, back into their logs, in later turns
// of their poll loop. It does not wait for the brokers: a silent one would hold up all polls. Until
// a position is moved, its fetch is paused: kgo would repeat it at once. A position that several
// polls report is moved once.
func (c *Consumer) move(lost []outOfRange, turns *pollGuard) {
	lost = slices.DeleteFunc(slices.Clone(lost), func(o outOfRange) bool { return !o.feed.astray.CompareAndSwap(false, true) })
	if len(lost) == 0 {
		return
	}
	c.applyAstray(lost)
	c.wg.Go(func() {
		for {
			left, err := c.tryMove(lost, turns)
			if lost = left; len(lost) == 0 {
				return
			}
			first := lost[0].at
			c.log.Warn("siding: trying again", "what", "moving positions that are out of range", "positions", len(lost), "topic", first.topic, "partition", first.partition, "wait", time.Second, "error", err)
			if !backoff.Wait(c.stop, time.Second) {
				return
			}
		}
	})
}

// applyAstray pauses or resumes the fetches of positions that were found outside of their log, or
// back in it.
func (c *Consumer) applyAstray(positions []outOfRange) {
	for _, o := range positions {
		o.feed.pauser().apply(&o.feed.fetch)
	}
}

// tryMove asks where the logs begin and end, with one query for all positions, and moves the
// positions in a turn of their poll loop. It returns those whose leaders did not answer.
func (c *Consumer) tryMove(lost []outOfRange, turns *pollGuard) (left []outOfRange, err error) {
	partitions := map[string][]int32{}
	for _, o := range lost {
		partitions[o.at.topic] = append(partitions[o.at.topic], o.at.partition)
	}
	ctx, cancel := context.WithTimeout(c.stop, offsetsTimeout)
	defer cancel()
	logs, _ := c.cluster.Bounds(ctx, partitions) // Of returns the error
	var failures []error
	turns.betweenPolls(func() {
		if c.stop.Err() != nil {
			return
		}
		var known []outOfRange
		for _, o := range lost {
			if _, _, err := logs.Of(o.at.topic, o.at.partition); err != nil {
				left, failures = append(left, o), append(failures, err)
				continue
			}
			o.feed.astray.Store(false)
			known = append(known, o)
		}
		c.applyAstray(known) // first, so that the next fetch is at the new position
		for _, o := range known {
			start, end, _ := logs.Of(o.at.topic, o.at.partition)
			if o.tier == nil {
				c.moveSource(o, start, end)
			} else {
				c.moveTier(o, start, end)
			}
		}
	})
	return left, joinFew(failures)
}

// moveSource moves the position of a source back into its log.
func (c *Consumer) moveSource(o outOfRange, start, end int64) {
	l := c.lane(o.at.topic, o.at.partition)
	if l == nil {
		return
	}
	l.mu.Lock()
	next, floor := l.source.tracker.Next, l.source.tracker.Floor()
	takes := l.state < laneDraining && l.intake == intakeOpen
	l.mu.Unlock()
	switch {
	case !takes: // not the lane's position: it sets its own later, or is being revoked
		c.setSource(l, start)
		return
	case o.loss != nil:
		c.log.Error("siding: the log was truncated; its lane restarts", "topic", l.topic, "partition", l.partition, "read_to", next, "truncated_to", o.loss.ResetTo)
		c.replace(l, beginAt(min(floor, max(o.loss.ResetTo, start))))
		return
	case next > end:
		c.log.Error("siding: the position is beyond the log's end, so the log was replaced; reading it from its start",
			"topic", l.topic, "partition", l.partition, "position", next, "start", start, "end", end)
		c.replace(l, beginAt(start))
		return
	case next < start:
		next = c.skipExpired(&l.source.feed, next, start)
	}
	c.setSource(l, next)
}

// skipExpired passes over the offsets between a feed's next record and the start of its log.
func (c *Consumer) skipExpired(f *feed, next, start int64) int64 {
	c.expired(f.topic, f.partition, start-next)
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.tracker.Skip(start)
	return start
}

// replace restarts a lane with its source at a position.
func (c *Consumer) replace(l *lane, at startPosition) {
	if successor := c.replacement(l, at); successor != nil {
		c.wg.Go(func() { c.startLanes([]*lane{successor}) })
	}
}

// replacement makes the lane that replace starts, and closes the old one. It runs in a turn of the
// source's poll loop. It returns nil if the lane no longer owns its partition: another lane
// replaced it, or it is being revoked.
func (c *Consumer) replacement(l *lane, at startPosition) *lane {
	held := topicPartition{l.topic, l.partition}
	c.mu.Lock()
	l.mu.Lock()
	member, state, reads := l.member, l.state, l.intake != intakeClosed
	l.mu.Unlock()
	if c.lanes[held] != l || state >= laneDraining {
		c.mu.Unlock()
		return nil
	}
	successor := c.newLane(l.topic, l.partition, member)
	successor.source.start(at)
	if reads {
		successor.intake = intakeOpen // from the position that is set below, in the same turn
	}
	c.lanes[held] = successor
	c.countLanes()
	c.mu.Unlock()
	c.discard([]*lane{l})
	c.setSource(successor, at.next.Offset)
	return successor
}

func (c *Consumer) setSource(l *lane, at int64) {
	c.group.SetOffsets(map[string]map[int32]kgo.EpochOffset{l.topic: {l.partition: {Epoch: -1, Offset: at}}})
}

// moveTier moves the position of a tier back into its log. If the log is another one, records of
// the old log may be running, and their offsets must not finish those of the new log. The whole
// lane therefore restarts from its committed offsets. A truncated tier restarts from where its log
// was cut, even if the committed offset is higher: the records written from there on have never
// run.
func (c *Consumer) moveTier(o outOfRange, start, end int64) {
	f := o.tier
	l := f.lane
	l.mu.Lock()
	next, gone := f.tracker.Next, l.state >= laneDraining
	l.mu.Unlock()
	switch {
	case gone && o.loss == nil:
		return
	case o.loss != nil || next > end:
		c.log.Error("siding: the log of a retry topic was truncated or replaced; its lane restarts",
			"topic", l.topic, "retry_topic", f.topic, "partition", l.partition, "position", next, "start", start, "end", end)
		if o.loss != nil {
			c.truncated(l, f.topic, max(o.loss.ResetTo, start))
		}
		c.betweenPolls(func() {
			held := c.lane(l.topic, l.partition)
			if held == nil {
				return
			}
			held.mu.Lock()
			at, placed := held.restart(), held.positionsLoaded
			held.mu.Unlock()
			// The lane may have restarted already for another truncated tier. A lane without
			// positions yet reads the cut when it gets them.
			if held != l && !(placed && c.isTruncated(held, f.topic)) {
				return
			}
			c.replace(held, at)
		})
		return
	case next < start:
		next = c.skipExpired(&f.feed, next, start)
	}
	c.retryPoll.client.RemoveConsumePartitions(map[string][]int32{f.topic: {l.partition}})
	c.retryPoll.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{f.topic: {l.partition: kgo.NewOffset().At(next)}})
}

// truncated records the offset to which the log of a lane's tier was truncated.
func (c *Consumer) truncated(l *lane, tier string, to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := topicPartition{l.topic, l.partition}
	if c.truncations[at] == nil {
		c.truncations[at] = map[string]int64{}
	}
	if before, ok := c.truncations[at][tier]; !ok || to < before {
		c.truncations[at][tier] = to
	}
}

// isTruncated reports whether a tier of the lane was truncated and is yet to be read from there.
func (c *Consumer) isTruncated(l *lane, tier string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.truncations[topicPartition{l.topic, l.partition}][tier]
	return ok
}

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
