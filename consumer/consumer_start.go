package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// startLanes starts new lanes. A lane may run once its siblings exist, each of its partitions has a
// committed offset, and the retry client reads its tiers. startLanes tries until all lanes have
// started or are gone.
//
// The commit comes first on purpose. A tier belongs to a group once the group has a committed
// offset on it. And if a lane dies before its first commit, its successor must start where it did,
// not at the log's start of that time.
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
	// A lane without positions or commits must not hold up the others.
	err := c.loadPositions(lanes)
	err = errors.Join(err, committer{c}.commit(c.ctx, lanes))
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

// loadPositions finds the start of each tier of the lanes: the group's stable committed offset,
// else that of a former group, else the log's start. Config.Start has no say in this.
func (c *Consumer) loadPositions(lanes []*lane) error {
	ids, lanes, missing := c.siblingsReady(c.ctx, lanes)
	if len(lanes) == 0 {
		return missing
	}
	tiers := tiersOf(lanes)
	inGroup, former := c.cluster.OffsetsOf(c.ctx, c.cfg.Group, tiers), c.cluster.FormerOffsets(c.ctx, c.cfg.FormerGroups, tiers)
	ctx, cancel := context.WithTimeout(c.ctx, offsetsTimeout)
	defer cancel()
	// Of returns the error for a lane that needs it
	logs, _ := c.cluster.Bounds(ctx, tiers)
	var failures []error
	for _, l := range lanes {
		if err := c.loadLanePositions(l, ids, inGroup, former, logs); err != nil {
			l.setWhy("waiting to learn where its retry partitions start: " + err.Error())
			failures = append(failures, err)
		}
	}
	return errors.Join(missing, joinFew(failures))
}

// loadLanePositions is loadPositions for one lane.
func (c *Consumer) loadLanePositions(l *lane, ids map[string]kadm.TopicID, inGroup cluster.GroupOffsets, former cluster.Former, logs cluster.Bounds) error {
	l.mu.Lock()
	placed := l.positionsLoaded
	l.mu.Unlock()
	if placed {
		return nil
	}
	tiers := l.tiers()
	at := make([]startPosition, len(tiers))
	for i, f := range tiers {
		if f.parked.Retired() {
			continue
		}
		var err error
		if at[i], err = c.tierAt(f, inGroup, former, logs); err != nil {
			return err
		}
	}
	c.mu.Lock() // truncated, from now on, finds the positions loaded
	defer c.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	held := topicPartition{l.topic, l.partition}
	if len(l.tiers()) != len(tiers) {
		return fmt.Errorf("%v: a drained tier was found meanwhile", l)
	}
	if l.state == laneStarting && c.lanes[held] == l {
		for i, f := range tiers {
			if to, ok := c.truncations[held][f.topic]; ok && to < at[i].next.Offset {
				at[i] = beginAt(to)
			}
			f.start(at[i])
			f.id = ids[f.topic]
		}
		delete(c.truncations, held)
		l.positionsLoaded, l.why = true, "committing its start"
	}
	return nil
}

// tierAt returns where a lane's tier starts.
func (c *Consumer) tierAt(f *tierFeed, inGroup cluster.GroupOffsets, former cluster.Former, logs cluster.Bounds) (startPosition, error) {
	at := topicPartition{f.topic, f.lane.partition}
	committed, err := inGroup.Of(at.topic, at.partition)
	if err != nil {
		return beginAt(0), err
	}
	return laneStarter{c}.findStart(at, committed, former, logs, func() (int64, error) {
		start, _, err := logs.Of(at.topic, at.partition)
		return start, err
	})
}

// siblingsReady checks that every tier and dead-letter topic has the lanes' partitions, and
// provisions them if not. It returns the topics' ids, and the lanes whose siblings are complete.
// The other lanes wait.
func (c *Consumer) siblingsReady(ctx context.Context, lanes []*lane) (ids map[string]kadm.TopicID, ready []*lane, err error) {
	asked := tiersOf(lanes)
	for _, l := range lanes {
		asked[l.siblings.DLQ] = nil
	}
	now, err := c.cluster.Describe(ctx, slices.Collect(maps.Keys(asked)))
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
				missing = append(missing, fmt.Errorf("%s/%d does not exist", f.topic, l.partition))
				c.topics.Suspect(f.topic, t.Err)
				if !f.drained {
					sources[l.topic] = true
				}
			}
		}
		// A dead-letter topic that is missing or hidden blocks the lane only once a copy needs it.
		if t := now[l.siblings.DLQ]; t.Err == nil && t.Partitions <= l.partition {
			missing = append(missing, fmt.Errorf("%s/%d does not exist", l.siblings.DLQ, l.partition))
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
	return ids, ready, errors.Join(joinFew(missing), c.provisioner.ensure(ctx, slices.Collect(maps.Keys(sources))))
}

// discard ends lanes without a commit.
func (c *Consumer) discard(lanes []*lane) {
	for _, l := range lanes {
		l.close()
	}
	c.remove(lanes)
}

// remove removes lanes from the table, if still there, and their tiers from the retry client.
func (c *Consumer) remove(lanes []*lane) {
	if len(lanes) == 0 {
		return
	}
	c.mu.Lock()
	for _, l := range lanes {
		at := topicPartition{l.topic, l.partition}
		if c.lanes[at] == l {
			delete(c.lanes, at)
		}
	}
	c.countLanes()
	c.mu.Unlock()
	c.retryPoll.remove(lanes)
}
