package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// startLanes takes new lanes to the point where they may run: their siblings exist, each partition
// of the lane has a committed offset, and the retry client reads the tiers from there. It tries
// until it succeeds or the lanes are gone.
//
// The commit comes first on purpose. A tier belongs to a group when the group has a committed
// offset on it; and a lane that dies before its first commit must be found by its successor where
// it started, not where the log starts by then.
func (c *Consumer) startLanes(lanes []*lane) {
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
		return c.tryStartLanes(lanes)
	})
}

func (c *Consumer) tryStartLanes(lanes []*lane) error {
	topics := map[string]bool{}
	for _, l := range lanes {
		for _, f := range l.tiers() {
			if !f.parked.Retired() {
				topics[f.topic] = true
			}
		}
	}
	// A lane that cannot be placed or committed holds up none of the others.
	err := c.loadPositions(lanes, keys(topics))
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
		l.run()
	}
	if len(ready) == len(lanes) {
		return nil
	}
	return err
}

// loadPositions finds out where each tier of the lanes starts: at the group's stable committed
// offset; where there is none, at that of a former group, and else at the log's start, whatever the
// source's start option says.
func (c *Consumer) loadPositions(lanes []*lane, topics []string) error {
	ids, lanes, missing := c.siblingsReady(c.ctx, lanes, topics)
	if len(lanes) == 0 {
		return missing
	}
	tiers := tiersOf(lanes)
	inGroup, former := c.cluster.OffsetsOf(c.ctx, c.groups.own(), tiers), c.cluster.FormerOffsets(c.ctx, c.groups.former(), tiers)
	logs, _ := c.cluster.Bounds(c.ctx, topics...) // who needs it is told
	var failures []error
	for _, l := range lanes {
		if err := c.loadLanePositions(l, ids, inGroup, former, logs); err != nil {
			l.setWhy("waiting to learn where its retry partitions start: " + err.Error())
			failures = append(failures, err)
		}
	}
	return errors.Join(missing, joinFew(failures))
}

// loadLanePositions does so for the tiers of one lane.
func (c *Consumer) loadLanePositions(l *lane, ids map[string]kadm.TopicID, inGroup cluster.GroupOffsets, former cluster.Former, logs cluster.Bounds) error {
	l.mu.Lock()
	placed := l.positionsLoaded
	l.mu.Unlock()
	if placed {
		return nil
	}
	tiers := l.tiers()
	at, epochs := make([]offsets.Tracker, len(tiers)), make([]int32, len(tiers))
	for i, f := range tiers {
		if f.parked.Retired() {
			continue
		}
		var err error
		if at[i], epochs[i], err = c.tierAt(f, inGroup, former, logs); err != nil {
			return err
		}
	}
	c.mu.Lock() // a cut that is noted from now on finds the lane placed
	defer c.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	held := topicPartition{l.topic, l.partition}
	if len(l.tiers()) != len(tiers) {
		return fmt.Errorf("%v: a tier was found meanwhile", l)
	}
	if l.state == laneStarting && c.lanes[held] == l {
		for i, f := range tiers {
			if to, ok := c.truncations[held][f.topic]; ok && to < at[i].Next {
				at[i], epochs[i] = offsets.New(to, -1), -1
			}
			f.tracker, f.epoch, f.id = at[i], epochs[i], ids[f.topic]
		}
		delete(c.truncations, held)
		l.positionsLoaded, l.why = true, "committing its start"
	}
	return nil
}

// tierAt is where a tier of a lane starts.
func (c *Consumer) tierAt(f *tierFeed, inGroup cluster.GroupOffsets, former cluster.Former, logs cluster.Bounds) (at offsets.Tracker, epoch int32, err error) {
	physical := topicPartition{f.topic, f.lane.partition}
	committed, err := inGroup.Of(physical.topic, physical.partition)
	if err != nil {
		return at, -1, err
	}
	if committed.Offset >= 0 {
		at = offsets.New(c.clampToLog(logs, physical.topic, physical.partition, committed.Offset))
		if at.Next != committed.Offset {
			committed.Epoch = -1
		}
		return at, committed.Epoch, nil
	}
	left, known, err := former.Of(physical.topic, physical.partition)
	if err != nil {
		return at, -1, err
	}
	var start int64
	if known {
		start, _ = c.clampToLog(logs, physical.topic, physical.partition, left.Offset)
	} else if start, _, err = logs.Of(physical.topic, physical.partition); err != nil {
		return at, -1, err
	}
	return offsets.New(start, -1), -1, nil
}

// siblingsReady makes sure that every tier and dead-letter topic has the lanes' partitions, and
// provisions again if not. It returns the topics' ids, and the lanes whose siblings have them: the
// others wait, by themselves.
func (c *Consumer) siblingsReady(ctx context.Context, lanes []*lane, topics []string) (ids map[string]kadm.TopicID, ready []*lane, err error) {
	asked := slices.Clone(topics)
	for _, l := range lanes {
		asked = append(asked, l.siblings.DLQ)
	}
	slices.Sort(asked)
	now, err := c.cluster.Describe(ctx, slices.Compact(asked))
	if err != nil {
		return nil, nil, err
	}
	ids = make(map[string]kadm.TopicID, len(now))
	for topic, t := range now {
		ids[topic] = t.ID
	}
	var missing []error
	sources := map[string]bool{}
	for _, l := range lanes {
		before := len(missing)
		for _, f := range l.tiers() {
			if t := now[f.topic]; !f.parked.Retired() && (t.Err != nil || t.Partitions <= l.partition) {
				missing = append(missing, fmt.Errorf("%s/%d is not there", f.topic, l.partition))
				c.topics.Suspect(f.topic, t.Err)
				if !f.drained {
					sources[l.topic] = true
				}
			}
		}
		// One that is missing, or may not be seen, blocks the lane when there is a copy for it.
		if t := now[l.siblings.DLQ]; t.Err == nil && t.Partitions <= l.partition {
			missing = append(missing, fmt.Errorf("%s/%d is not there", l.siblings.DLQ, l.partition))
			sources[l.topic] = true
		}
		if len(missing) == before {
			ready = append(ready, l)
		} else {
			l.setWhy("waiting for its siblings")
		}
	}
	if len(missing) == 0 {
		return ids, ready, nil
	}
	return ids, ready, errors.Join(joinFew(missing), c.provisioner.ensure(ctx, keys(sources)))
}
