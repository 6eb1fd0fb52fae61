package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxCommitPartitions bounds a commit request. The broker appends a request to its offsets topic as
// one batch of at most 1 MiB, and refuses all partitions of a larger one. A partition takes less
// than 600 bytes, even if the names of topic and group have Kafka's 249 characters.
const maxCommitPartitions = 1000

// recommitAfter is the age at which an offset is committed again without progress. The broker drops
// offsets of topics to which no member subscribes after offsets.retention.minutes, 7 days by
// default (KIP-211). No member subscribes to tiers.
const recommitAfter = 24 * time.Hour

// commitLoop commits the finished offsets at each CommitInterval.
func (c *Consumer) commitLoop(ctx context.Context) {
	t := time.NewTicker(c.cfg.CommitInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		began := time.Now()
		lanes := c.lanesNow()
		if source, retry := uncommitted(lanes, began); len(source)+len(retry) == 0 {
			c.membership.NoteCommit(began, nil)
			continue
		}
		if err := c.commit(ctx, lanes); ctx.Err() == nil {
			c.membership.NoteCommit(began, err) // commit has logged err; the next tick tries again
		}
	}
}

// commit commits the floors of the lanes' feeds. It waits while the member joins.
//
// commit holds the membership from reading the floors until the broker has answered. That makes a
// revoke safe: its last commit waits for the one before. So no older floor of the lane can be in
// flight when the lane is closed, and overwrite the next owner's commit.
//
// Source and retry partitions go in separate requests. Under KIP-848 one partition with a stale
// epoch makes the broker refuse the whole request. It also has different rules for partitions of a
// subscription and for others.
func (c *Consumer) commit(ctx context.Context, lanes []*lane) error {
	ctx, cancel := context.WithTimeout(ctx, c.commitTimeout)
	defer cancel()
	ctx, release, err := c.membership.Hold(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			if source, retry := uncommitted(lanes, time.Now()); len(source)+len(retry) == 0 {
				return nil
			}
			c.throttle.Once("commit waits", time.Minute, func() {
				c.log.Warn("siding: offsets not committed because the member is joining; the next commit includes them", "waited", c.commitTimeout)
			})
		}
		return fmt.Errorf("commit: %w", err)
	}
	defer release()

	source, retry := uncommitted(lanes, time.Now())
	return errors.Join(c.sendCommit(ctx, source), c.sendCommit(ctx, retry))
}

// uncommitted collects the floors that are to be committed: those of the lanes' sources, and those
// of their tiers.
func uncommitted(lanes []*lane, now time.Time) (source, retry commitRequest) {
	for _, l := range lanes {
		l.mu.Lock()
		if l.state != laneGone && l.positionsLoaded {
			if l.source.needsCommit(now) {
				source.add(&l.source.feed, nil)
			}
			for _, f := range l.tiers() {
				if !f.parked.Retired() && f.needsCommit(now) {
					id := f.id
					retry.add(&f.feed, &id)
				}
			}
		}
		l.mu.Unlock()
	}
	return source, retry
}

// commitRequest collects the offsets of source partitions, or those of retry partitions.
type commitRequest []commitEntry

type commitEntry struct {
	feed *feed
	id   *kadm.TopicID // of a tier's topic; nil for a source, whose id kgo sets
	at   kgo.EpochOffset
}

func (r *commitRequest) add(f *feed, id *kadm.TopicID) {
	*r = append(*r, commitEntry{f, id, kgo.EpochOffset{Epoch: f.epoch, Offset: f.tracker.Floor()}})
}

func (c *Consumer) sendCommit(ctx context.Context, all commitRequest) (err error) {
	for part := range slices.Chunk(all, maxCommitPartitions) {
		err = errors.Join(err, c.sendOne(ctx, part))
	}
	return err
}

func (c *Consumer) sendOne(ctx context.Context, entries commitRequest) error {
	inGroup := map[string]map[int32]kgo.EpochOffset{}
	byPartition := map[topicPartition]commitEntry{}
	for _, e := range entries {
		put(inGroup, e.feed.topic, e.feed.lane.partition, e.at)
		byPartition[topicPartition{e.feed.topic, e.feed.lane.partition}] = e
	}
	var failure error
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		c.completeCommit(req, byPartition)
		return nil
	})
	c.group.CommitOffsetsSync(ctx, inGroup, func(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			failure = err
			return
		}
		failure = c.committed(req, resp, byPartition)
	})
	switch {
	case failure == nil:
		return nil
	// a cancelled commit is not logged: the membership is lost, or the consumer ends
	case !errors.Is(ctx.Err(), context.Canceled):
		c.throttle.Once("commit "+failure.Error(), 10*time.Second, func() {
			c.log.Warn("siding: offsets not committed; the next commit includes them", "partitions", len(entries), "error", failure)
		})
	}
	return fmt.Errorf("commit of %d partitions: %w", len(entries), failure)
}

// completeCommit checks a commit last: kgo has fixed its membership, and no join can come between.
// It removes each partition whose lane is not owned under exactly that membership.
//
// The broker checks that the member is in the group, not that it owns the partition. A member that
// was expelled (after a long garbage collection, on a suspended laptop) and has joined again could
// therefore rewind the new owner's commits. In kgo's cooperative mode it may keep its lanes. The
// refused commit makes kgo join again with a new member id. Partitions in both the old and the new
// assignment count as never lost.
//
// completeCommit also sets the topic id of a tier's offset, so that the broker (since Kafka 4.1)
// refuses an offset of a topic that was recreated since. kgo does so for sources, and answers for
// the partitions that it withholds; an error from here would hide those answers.
func (c *Consumer) completeCommit(req *kmsg.OffsetCommitRequest, entries map[topicPartition]commitEntry) {
	topics := req.Topics[:0]
	for _, t := range req.Topics {
		ps := t.Partitions[:0]
		for _, p := range t.Partitions {
			e := entries[topicPartition{t.Topic, p.Partition}]
			if len(ps) == 0 && e.id != nil && *e.id != (kadm.TopicID{}) {
				t.TopicID = *e.id
			}
			if e.feed.lane.isOwnedBy(req.MemberID) && (e.id == nil || *e.id == t.TopicID) {
				p.Metadata = kmsg.StringPtr(commitmark.Mark)
				ps = append(ps, p)
			}
		}
		if t.Partitions = ps; len(ps) > 0 {
			topics = append(topics, t)
		}
	}
	req.Topics = topics
}

// committed records the offsets that the broker accepted, and returns the errors of the others.
func (c *Consumer) committed(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, entries map[topicPartition]commitEntry) error {
	names := map[kadm.TopicID]string{} // responses to requests by id name no topic
	for _, t := range req.Topics {
		names[t.TopicID] = t.Topic
	}
	var failures []error
	for _, t := range resp.Topics {
		if t.Topic == "" {
			t.Topic = names[t.TopicID]
		}
		for _, p := range t.Partitions {
			e, ok := entries[topicPartition{t.Topic, p.Partition}]
			if !ok {
				continue
			}
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				if c.classic && errors.Is(err, kerr.IllegalGeneration) {
					e.feed.lane.disown()
				}
				c.topics.Suspect(t.Topic, err)
				failures = append(failures, fmt.Errorf("%s/%d: %w", t.Topic, p.Partition, err))
				continue
			}
			e.feed.lane.mu.Lock()
			e.feed.tracker.Committed, e.feed.committedAt = e.at.Offset, time.Now()
			e.feed.lane.mu.Unlock()
		}
	}
	return joinFew(failures)
}

// joinFew joins the first few errors: a thousand partitions fail for the same reason.
func joinFew(all []error) error {
	const some = 3
	if len(all) > some {
		all = append(all[:some:some], fmt.Errorf("and %d more", len(all)-some))
	}
	return errors.Join(all...)
}
