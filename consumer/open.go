package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// open takes new lanes to the point where they may run: their siblings exist, each partition of the lane has a committed
// offset, and the retry client reads the tiers from there. It tries until it succeeds or the lanes are gone.
//
// The commit comes first on purpose. A tier belongs to a group when the group has a committed offset on it; and a lane
// that dies before its first commit must be found by its successor where it started, not where the log starts by then.
func (c *Consumer) open(lanes []*lane) {
	c.retry(c.ctx, "opening lanes", func() error {
		waiting := lanes[:0]
		for _, l := range lanes {
			if l.isStarting() {
				waiting = append(waiting, l)
			}
		}
		if lanes = waiting; len(lanes) == 0 {
			return nil
		}
		return c.tryOpen(lanes)
	})
	c.readyOnce()
}

func (c *Consumer) tryOpen(lanes []*lane) error {
	topics := map[string]bool{}
	for _, l := range lanes {
		for _, f := range l.tiers() {
			if !f.retired.Load() {
				topics[f.topic] = true
			}
		}
	}
	// A lane that cannot be placed or committed holds up none of the others.
	err := c.place(lanes, keys(topics))
	err = errors.Join(err, c.commit(c.ctx, lanes))
	ready := make([]*lane, 0, len(lanes))
	for _, l := range lanes {
		if l.committedEverywhere() {
			ready = append(ready, l)
		} else {
			err = errors.Join(err, fmt.Errorf("%v: its start is not committed yet", l))
		}
	}
	c.retryPoll.add(ready)
	for _, l := range ready {
		l.open()
	}
	if len(ready) == len(lanes) {
		return nil
	}
	return err
}

// place finds out where each tier of the lanes starts: at the group's stable committed offset; where there is none, at that of a
// former group, and else at the log's start, whatever the source's start option says.
func (c *Consumer) place(lanes []*lane, topics []string) error {
	var ids map[string]kadm.TopicID
	var missing error
	if len(topics) > 0 {
		var err error
		if ids, lanes, err = c.siblingsReady(c.ctx, lanes, topics); len(lanes) == 0 {
			return err
		}
		missing = err
	}
	offsets := map[topicPartition]kgo.EpochOffset{}
	if len(topics) > 0 {
		var err error
		if offsets, err = c.committedOffsets(c.ctx, topics...); err != nil {
			return err
		}
	}
	former, err := c.formerOffsets(c.ctx, topics...)
	if err != nil {
		return err
	}
	logs, err := c.bounds(c.ctx, topics...)
	if err != nil {
		return err
	}
	var failures []error
	for _, l := range lanes {
		if err := c.placeLane(l, ids, offsets, former, logs); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(missing, joinSome(failures))
}

// placeLane does so for the tiers of one lane.
func (c *Consumer) placeLane(l *lane, ids map[string]kadm.TopicID, offsets, former map[topicPartition]kgo.EpochOffset, logs bounds) error {
	l.mu.Lock()
	placed := l.placed
	l.mu.Unlock()
	if placed {
		return nil
	}
	at, epochs := make([]tracker, len(l.tiers())), make([]int32, len(l.tiers()))
	for i, f := range l.tiers() {
		if f.retired.Load() {
			continue
		}
		physical := topicPartition{f.topic, l.partition}
		epochs[i] = -1
		committed, ok := offsets[physical]
		left, known := former[physical]
		switch {
		case ok && committed.Offset >= 0:
			at[i] = newTracker(c.within(logs, f.topic, l.partition, committed.Offset))
			if at[i].next == committed.Offset {
				epochs[i] = committed.Epoch
			}
		case known:
			position, _ := c.within(logs, f.topic, l.partition, left.Offset)
			at[i] = newTracker(position, -1)
		default:
			start, _, err := logs.of(f.topic, l.partition)
			if err != nil {
				return err
			}
			at[i] = newTracker(start, -1)
		}
	}
	c.mu.Lock() // a cut that is noted from now on finds the lane placed
	defer c.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	held := topicPartition{l.topic, l.partition}
	if l.state == laneStarting && c.lanes[held] == l {
		for i, f := range l.tiers() {
			if to, ok := c.cuts[held][f.topic]; ok && to < at[i].next {
				at[i], epochs[i] = newTracker(to, -1), -1
			}
			f.tracker, f.epoch, f.id = at[i], epochs[i], ids[f.topic]
		}
		delete(c.cuts, held)
		l.placed, l.why = true, "committing its start"
	}
	return nil
}

// committedEverywhere reports whether each partition of the lane has a committed offset. A lane that is being given up
// needs none.
func (l *lane) committedEverywhere() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneStarting {
		return true
	}
	for _, f := range l.feeds {
		if f.tracker.committed < 0 && !f.retired.Load() {
			return false
		}
	}
	return l.placed
}

func (l *lane) isStarting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == laneStarting
}

func (l *lane) isGone() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// committedOffsets asks for the group's stable offsets: those of an open transaction that may still commit are waited
// for, not guessed at.
func (c *Consumer) committedOffsets(ctx context.Context, topics ...string) (map[topicPartition]kgo.EpochOffset, error) {
	return c.offsetsOf(ctx, c.cfg.Group, topics...)
}

func (c *Consumer) offsetsOf(ctx context.Context, group string, topics ...string) (map[topicPartition]kgo.EpochOffset, error) {
	resp, err := c.admin.FetchOffsetsForTopics(kadm.RequireStable(ctx), group, topics...)
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("fetch of the offsets of group %q: %w", group, err)
	}
	offsets := map[topicPartition]kgo.EpochOffset{}
	var failures []error
	resp.Each(func(o kadm.OffsetResponse) {
		if o.Err != nil {
			failures = append(failures, fmt.Errorf("fetch of the offset of group %q on %s/%d: %w", group, o.Topic, o.Partition, o.Err))
			return
		}
		offsets[topicPartition{o.Topic, o.Partition}] = kgo.EpochOffset{Epoch: o.LeaderEpoch, Offset: o.At}
	})
	return offsets, joinSome(failures)
}

// lister lists offsets at the first need.
type lister struct {
	list   func() (kadm.ListedOffsets, error)
	listed kadm.ListedOffsets
}

// starts lists where the topics' partitions start that the group has no offset on.
func (c *Consumer) starts(ctx context.Context, topics ...string) *lister {
	return &lister{list: func() (kadm.ListedOffsets, error) { return c.cfg.Start.list(ctx, c.admin, topics...) }}
}

func (s *lister) of(topic string, partition int32) (int64, error) {
	if s.listed == nil {
		listed, err := s.list()
		if err != nil && !isPartial(err) {
			return 0, fmt.Errorf("list of start offsets: %w", err)
		}
		s.listed = listed
	}
	return offsetIn(s.listed, topic, partition)
}

// siblingsReady makes sure that every tier has the lanes' partitions, and provisions again if not. It returns the tiers' ids, and the lanes
// whose tiers have them: the others wait, by themselves.
func (c *Consumer) siblingsReady(ctx context.Context, lanes []*lane, topics []string) (ids map[string]kadm.TopicID, ready []*lane, err error) {
	now, err := c.describe(ctx, topics)
	if err != nil {
		return nil, nil, err
	}
	ids = make(map[string]kadm.TopicID, len(now))
	for topic, t := range now {
		ids[topic] = t.id
	}
	var missing []error
	sources := map[string]bool{}
	for _, l := range lanes {
		before := len(missing)
		for _, f := range l.tiers() {
			if t := now[f.topic]; !f.retired.Load() && (t.err != nil || t.partitions <= l.partition) {
				missing = append(missing, fmt.Errorf("%s/%d is not there", f.topic, l.partition))
				c.topics.suspect(f.topic, t.err)
				if !f.inherited {
					sources[l.topic] = true
				}
			}
		}
		if len(missing) == before {
			ready = append(ready, l)
		} else {
			l.explain("waiting for its siblings")
		}
	}
	if len(missing) == 0 {
		return ids, ready, nil
	}
	return ids, ready, errors.Join(joinSome(missing), c.provision(ctx, keys(sources)))
}

func (l *lane) explain(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneStarting {
		l.why = why
	}
}

// retry repeats do, with backoff, until it succeeds or ctx ends.
func (c *Consumer) retry(ctx context.Context, what string, do func() error) bool {
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		wait := backoff(n, 100*time.Millisecond, 10*time.Second)
		c.log.Warn("siding: trying again", "what", what, "wait", wait, "error", err)
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
		}
	}
}
