package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxCommitBytes bounds a commit request. The broker appends a request as one batch of at most 1
// MiB to its offsets topic and refuses every partition of a larger one.
const maxCommitBytes = 256 << 10

// recommitAfter is how long an offset may stand before it is committed again without progress. The
// broker forgets offsets of topics that no member subscribes to, which the tiers are, after
// offsets.retention.minutes: 7 days by default (KIP-211).
const recommitAfter = 24 * time.Hour

// commitLoop commits what is finished once an interval, and earlier when asked to.
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
		if err := c.commit(ctx, c.lanesNow()); ctx.Err() == nil {
			c.membership.NoteCommit(began, err) // said in the log, and tried again at the next tick
		}
	}
}

// commit commits the floors of the lanes' feeds. While the member joins it waits.
//
// The commit lock is held from reading the floors until the broker answered. That is what makes a
// revoke safe: its last commit takes the lock too, so no older floor of the lane can still be on
// its way when the lane is forgotten, to land on top of what the next owner commits.
//
// Source and retry partitions go in requests of their own: under KIP-848 one partition with a stale
// epoch refuses a whole request, and the broker judges the two differently (those of a
// subscription, and the others).
func (c *Consumer) commit(ctx context.Context, lanes []*lane) error {
	ctx, cancel := context.WithTimeout(ctx, c.commitTimeout)
	defer cancel()
	ctx, release, err := c.membership.Hold(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.throttle.Once("commit waits", time.Minute, func() {
				c.log.Warn("siding: offsets not committed, since the member is joining; the next commit carries them", "waited", c.commitTimeout)
			})
		}
		return fmt.Errorf("commit: %w", err)
	}
	defer release()

	now := time.Now()
	var source, retry commitRequest
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
	return errors.Join(c.sendCommit(ctx, source), c.sendCommit(ctx, retry))
}

// commitRequest collects the offsets of one kind of partition.
type commitRequest []commitEntry

type commitEntry struct {
	feed *feed
	id   *kadm.TopicID // of a tier's topic; nil for a source, of which kgo knows it
	at   kgo.EpochOffset
	meta string
}

func (r *commitRequest) add(f *feed, id *kadm.TopicID) {
	*r = append(*r, commitEntry{f, id, kgo.EpochOffset{Epoch: f.epoch, Offset: f.tracker.Floor()}, f.tracker.Metadata()})
}

// split cuts off as much as one request may carry.
func (r commitRequest) split() (now, later commitRequest) {
	size := 0
	for i, e := range r {
		size += len(e.feed.topic) + len(e.meta) + 64
		if size > maxCommitBytes && i > 0 {
			return r[:i], r[i:]
		}
	}
	return r, nil
}

func (c *Consumer) sendCommit(ctx context.Context, all commitRequest) (err error) {
	for len(all) > 0 {
		var now commitRequest
		now, all = all.split()
		err = errors.Join(err, c.sendOne(ctx, now))
	}
	return err
}

func (c *Consumer) sendOne(ctx context.Context, entries commitRequest) error {
	inGroup := map[string]map[int32]kgo.EpochOffset{}
	byPartition := map[topicPartition]commitEntry{}
	for _, e := range entries {
		ps := inGroup[e.feed.topic]
		if ps == nil {
			ps = map[int32]kgo.EpochOffset{}
			inGroup[e.feed.topic] = ps
		}
		ps[e.feed.lane.partition] = e.at
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
	// else the membership is lost, or the consumer ends
	case !errors.Is(ctx.Err(), context.Canceled):
		c.throttle.Once("commit "+failure.Error(), 10*time.Second, func() {
			c.log.Warn("siding: offsets not committed, the next commit carries them", "partitions", len(entries), "error", failure)
		})
	}
	return fmt.Errorf("commit of %d partitions: %w", len(entries), failure)
}

// completeCommit is the last look at a commit, after kgo settled under which membership it goes and
// no join can come between: it takes out every partition whose lane is not held under exactly that
// membership.
//
// The broker checks that the member is in the group, not that it owns the partition. So a member
// that was expelled (a long garbage collection, a suspended laptop) and has joined again could
// rewind what the new owner committed meanwhile. It can keep its lanes over that in kgo's
// cooperative mode: the refused commit makes kgo join again with a new member id, and what is in
// the old and in the new assignment counts as never lost.
//
// It also says which topic by that name a tier's offset belongs to, so that the broker (since Kafka
// 4.1) refuses one that was reached in a topic that has been made anew since. For the source kgo
// does, and answers for those that it keeps back: an error from here would hide that.
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
				meta := e.meta
				p.Metadata = &meta
				ps = append(ps, p)
			}
		}
		if t.Partitions = ps; len(ps) > 0 {
			topics = append(topics, t)
		}
	}
	req.Topics = topics
}

// committed notes what the broker took, and returns what it refused.
func (c *Consumer) committed(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, entries map[topicPartition]commitEntry) error {
	names := map[kadm.TopicID]string{} // answers to requests by id name no topic
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

// joinFew joins errors, the first few of them: a thousand partitions fail for the same reason.
func joinFew(all []error) error {
	const some = 3
	if len(all) > some {
		all = append(all[:some:some], fmt.Errorf("and %d more", len(all)-some))
	}
	return errors.Join(all...)
}
