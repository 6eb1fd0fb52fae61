package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/internal/commitmark"
)

// committer commits the offsets and the evidence of lanes.
type committer struct{ *Consumer }

// commitLoop commits the finished offsets at each CommitInterval, and those of a lane earlier if
// the lane asks for it.
func (c committer) commitLoop(ctx context.Context) {
	t := time.NewTicker(c.cfg.CommitInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.asks.Asked():
			asking := c.asking()
			_ = c.commit(ctx, asking) // it has logged the error; the next tick tries again
			c.stillAsking(asking)
			continue
		case <-t.C:
		}
		began := time.Now()
		lanes := c.lanesNow()
		c.stillAsking(c.asking()) // which drops those that are gone
		if !anyUncommitted(lanes, began) {
			c.membership.NoteCommit(began, nil)
			continue
		}
		if err := c.commit(ctx, lanes); ctx.Err() == nil {
			c.membership.NoteCommit(began, err) // commit has logged err; the next tick tries again
		}
	}
}

// asking empties the queue of asks. It returns the lanes that still ask and still have their
// partitions: the lane that replaced another one must not be rewound by what that one asked for.
func (c committer) asking() []*lane {
	all := c.asks.Take()
	c.mu.Lock()
	all = slices.DeleteFunc(all, func(l *lane) bool { return c.lanes[topicPartition{l.topic, l.partition}] != l })
	c.mu.Unlock()
	return slices.DeleteFunc(all, func(l *lane) bool { return !l.asksForCommit() })
}

// stillAsking puts those lanes back into the queue whose ask no broker has answered: the next ask
// of any lane includes them.
func (c committer) stillAsking(lanes []*lane) {
	for _, l := range lanes {
		if l.asksForCommit() {
			c.asks.Keep(l)
		}
	}
}

// commit commits the floors of the lanes' feeds, and what is finished above them. It waits while
// the member joins.
//
// commit holds the membership from reading the floors until the broker has answered. That makes a
// revoke safe: its last commit waits for the one before. So no older floor of the lane can be in
// flight when the lane is closed, and overwrite the next owner's commit.
func (c committer) commit(ctx context.Context, lanes []*lane) error {
	ctx, cancel := context.WithTimeout(ctx, c.commitTimeout)
	defer cancel()
	ctx, release, err := c.membership.Hold(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			if !anyUncommitted(lanes, time.Now()) {
				return nil
			}
			c.throttle.Once("commit waits", time.Minute, func() {
				c.log.Warn("siding: offsets not committed because the member is joining; the next commit includes them", "waited", c.commitTimeout)
			})
		}
		return unsentError{fmt.Errorf("commit: %w", err)}
	}
	defer release()

	for {
		limit := c.metadataLimit.Load()
		var failures []error
		for part := range uncommitted(lanes, int(limit)).parts(len(c.cfg.Group)) {
			failures = append(failures, c.send(ctx, part))
		}
		err := errors.Join(failures...)
		if err == nil || limit == c.metadataLimit.Load() {
			return err
		}
	}
}

// anyUncommitted reports whether a feed of the lanes has something to commit.
func anyUncommitted(lanes []*lane, now time.Time) bool {
	return slices.ContainsFunc(lanes, func(l *lane) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.unsaved(now)) > 0
	})
}

// commitRequest lists what is to be committed, a lane after the other.
type commitRequest []commitEntry

type commitEntry struct {
	feed     *feed
	id       kadm.TopicID // see feed.id
	at       kgo.EpochOffset
	state    offsets.Commit
	evidence offsets.Evidence
	asked    int64 // see isolate.Window.Asked
	noted    *guard.Status
	lane     commitmark.Lane
	heads    []offsets.Head
	changes  uint64 // of these, which the commit says
	metadata string
}

// uncommitted collects what is to be committed, with metadata of at most limit characters.
func uncommitted(lanes []*lane, limit int) (all commitRequest) {
	now := time.Now()
	for _, l := range lanes {
		l.mu.Lock()
		for _, f := range l.unsaved(now) {
			e := commitEntry{feed: f, id: f.id, state: f.tracker.Commit(), noted: f.guardNoted(), lane: f.says}
			e.at = kgo.EpochOffset{Epoch: f.epoch, Offset: e.state.Floor}
			e.evidence, e.asked = f.evidence(now)
			e.heads, e.changes = f.heads()
			all = append(all, e)
		}
		l.mu.Unlock()
	}
	for i := range all {
		e := &all[i]
		said := offsets.Metadata{Finished: e.state.Finished, Evidence: e.evidence, Guard: markOf(e.noted), Lane: e.lane, Heads: e.heads}
		e.metadata = said.Encode(e.at.Offset, limit)
		if e.feed.tier.Topic == "" {
			heldLane{e.feed.lane}.noteRoom(len(e.metadata), limit)
		}
	}
	return all
}

// parts divides a request by size. A lane's offsets stay together, so that its source and its tiers
// never disagree.
func (r commitRequest) parts(group int) iter.Seq[commitRequest] {
	return func(yield func(commitRequest) bool) {
		first, size := 0, 0
		for i := 0; i < len(r); {
			next, lane := i, 0
			for ; next < len(r) && r[next].feed.lane == r[i].feed.lane; next++ {
				// and 100 for the fixed fields
				lane += group + len(r[next].feed.topic) + len(r[next].metadata) + 100
			}
			if size+lane > maxCommitBytes && i > first {
				if !yield(r[first:i]) {
					return
				}
				first, size = i, 0
			}
			i, size = next, size+lane
		}
		if first < len(r) {
			yield(r[first:])
		}
	}
}

// send sends one commit request, and logs why partitions of it were refused.
func (c committer) send(ctx context.Context, entries commitRequest) error {
	inGroup := map[string]map[int32]kgo.EpochOffset{}
	byPartition := map[topicPartition]commitEntry{}
	for _, e := range entries {
		put(inGroup, e.feed.topic, e.feed.lane.partition, e.at)
		byPartition[topicPartition{e.feed.topic, e.feed.lane.partition}] = e
	}
	var failure error
	var own *kmsg.OffsetCommitRequest
	toSend := kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		failure = c.withheld(req, entries)
		c.completeCommit(req, byPartition)
		if c.classic {
			return nil
		}
		own = req
		return errSentBySiding
	})
	c.group.CommitOffsetsSync(toSend, inGroup, func(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		switch {
		case errors.Is(err, errSentBySiding):
		case err != nil:
			failure = err
		default:
			failure = c.committed(req, resp, byPartition)
		}
	})
	if own != nil {
		failure = errors.Join(failure, c.sendWhole(ctx, own, byPartition))
	}
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

// withheld returns an error if kgo left partitions out of a request. It does so with those of a
// source that was recreated.
func (c committer) withheld(req *kmsg.OffsetCommitRequest, entries commitRequest) error {
	if c.classic {
		return nil // kgo answers for them
	}
	has := map[string]bool{}
	for _, t := range req.Topics {
		has[t.Topic] = true
	}
	var failures []error
	for _, e := range entries {
		if !has[e.feed.topic] {
			c.topics.Suspect(e.feed.topic, kerr.UnknownTopicID)
			failures = append(failures, fmt.Errorf("%s/%d: %w", e.feed.topic, e.feed.lane.partition, kerr.UnknownTopicID))
		}
	}
	return joinFew(failures)
}

// sendWhole sends a request under KIP-848. One partition with a stale epoch makes the broker refuse
// the whole request: it knows a newer epoch than the member, whose heartbeat has it in a moment.
// siding then sends the whole request again with that. kgo would leave out the partitions to which
// the member does not subscribe, those of the tiers, and a lane's source would be ahead of them.
func (c committer) sendWhole(ctx context.Context, req *kmsg.OffsetCommitRequest, entries map[topicPartition]commitEntry) error {
	for n := 1; len(req.Topics) > 0; n++ {
		resp, err := req.RequestWith(ctx, c.group)
		if err != nil {
			return err
		}
		if n == staleTries || !isStale(resp) || !refresh(ctx, c.group, req) {
			return c.committed(req, resp, entries)
		}
		c.completeCommit(req, entries) // a lane may be gone
	}
	return nil
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
func (c committer) completeCommit(req *kmsg.OffsetCommitRequest, entries map[topicPartition]commitEntry) {
	topics := req.Topics[:0]
	for _, t := range req.Topics {
		ps := t.Partitions[:0]
		for _, p := range t.Partitions {
			e := entries[topicPartition{t.Topic, p.Partition}]
			if len(ps) == 0 && e.id != (kadm.TopicID{}) {
				t.TopicID = e.id
			}
			if e.feed.lane.isOwnedBy(req.MemberID) && (e.feed.tier.Topic == "" || e.id == t.TopicID) {
				p.Metadata = kmsg.StringPtr(e.metadata)
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
func (c committer) committed(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, entries map[topicPartition]commitEntry) error {
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
				if errors.Is(err, kerr.OffsetMetadataTooLarge) {
					c.shortenMetadata(len(e.metadata))
				}
				failures = append(failures, fmt.Errorf("%s/%d: %w", t.Topic, p.Partition, err))
				continue
			}
			e.feed.lane.mu.Lock()
			e.feed.tracker.Accepted(e.state)
			e.feed.committedAt, e.feed.noted, e.feed.said = time.Now(), e.noted, e.lane
			e.feed.saidHeads(e.changes)
			if e.feed.window.Accept(e.evidence, e.asked) {
				e.feed.lane.wakeLocked()
			}
			e.feed.lane.mu.Unlock()
		}
	}
	return joinFew(failures)
}

// shortenMetadata halves the bound of metadata after the broker refused one of that length. Below a
// few characters only the mark is left.
func (c committer) shortenMetadata(length int) {
	now := c.metadataLimit.Load()
	if int64(length) > now || !c.metadataLimit.CompareAndSwap(now, now/2) { // halved since
		return
	}
	c.log.Warn("siding: the brokers store less with an offset than siding asks for (offset.metadata.max.bytes); after a crash, more records that had finished out of order run again",
		"refused", length, "now", now/2)
}
