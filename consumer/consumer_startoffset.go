package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// Where a source partition starts is asked of the group's coordinator, of the partition's leader,
// and of the coordinators of former groups. One of which that is not known (it has no leader, a
// right was withdrawn) is not to keep the others from their start: kgo is given an offset that is
// not read from, since the partition is paused, and the right one when it is known.

// startPosition is where a source partition is read from, and what counts as committed of it: -1
// for nothing.
type startPosition struct {
	next      kgo.EpochOffset
	committed int64
}

// startFinder are where source partitions start. What could not be asked holds up only those that
// need it. See DESIGN.md, "Where a partition starts".
type startFinder struct {
	c         *Consumer
	committed func(*lane) (kgo.EpochOffset, error)
	former    cluster.Former
	topics    map[string]*topicStarts
}

// topicStarts is what the brokers tell of one topic: where the right to see one is missing they
// refuse all that are asked for with it.
type topicStarts struct {
	logs      cluster.Bounds
	option    kadm.ListedOffsets // where Config.Start puts partitions
	optionErr error
}

// findStarts asks where the lanes' sources start; committed tells the group's offsets.
func (c *Consumer) findStarts(ctx context.Context, lanes []*lane, committed func(*lane) (kgo.EpochOffset, error)) *startFinder {
	ctx, cancel := context.WithTimeout(ctx, offsetsTimeout)
	defer cancel()
	fresh := sourcesOf(slices.DeleteFunc(slices.Clone(lanes), func(l *lane) bool {
		at, err := committed(l)
		return err != nil || at.Offset >= 0
	}))
	s := &startFinder{c: c, committed: committed, topics: map[string]*topicStarts{}}
	var asking sync.WaitGroup
	for topic := range sourcesOf(lanes) {
		t := &topicStarts{}
		s.topics[topic] = t
		asking.Go(func() {
			t.logs, _ = c.cluster.Bounds(ctx, topic) // who needs it is told
			if len(fresh[topic]) > 0 {
				t.option, t.optionErr = c.cfg.Start.list(ctx, c.admin, topic)
			}
		})
	}
	s.former = c.cluster.FormerOffsets(ctx, c.groups.former(), fresh)
	asking.Wait()
	return s
}

// of is where a lane's source starts. With an error it is a place that is not to be read from.
func (s *startFinder) of(l *lane) (startPosition, error) {
	c, at := s.c, topicPartition{l.topic, l.partition}
	unknown := startPosition{kgo.EpochOffset{Epoch: -1}, -1}
	committed, err := s.committed(l)
	if err != nil {
		return unknown, err
	}
	if committed.Offset >= 0 {
		position, counts := c.clampToLog(s.topics[l.topic].logs, at.topic, at.partition, committed.Offset)
		c.warnStaleOffset(at, committed.Offset, position, s.topics[l.topic].logs)
		if position != committed.Offset {
			committed.Epoch = -1
		}
		return startPosition{kgo.EpochOffset{Epoch: committed.Epoch, Offset: position}, counts}, nil
	}
	position, err := s.fresh(l)
	if err != nil {
		return unknown, err
	}
	return startPosition{kgo.EpochOffset{Epoch: -1, Offset: position}, -1}, nil
}

// fresh is where a source starts that the group has no offset on.
func (s *startFinder) fresh(l *lane) (int64, error) {
	if s.c.isRecreated(l.topic) {
		// all of it was written after what is consumed already
		start, _, err := s.topics[l.topic].logs.Of(l.topic, l.partition)
		return start, err
	}
	// in any case: what is written while a former group cannot be asked is not to be skipped
	begin, beginErr := s.configuredStart(l)
	left, known, err := s.former.Of(l.topic, l.partition)
	switch {
	case err != nil:
		return 0, err
	case known:
		position, _ := s.c.clampToLog(s.topics[l.topic].logs, l.topic, l.partition, left.Offset)
		return position, nil
	}
	return begin, beginErr
}

// configuredStart is where Config.Start puts a partition, once and for all: StartLatest means the
// end as it was when the lane asked first. One that was added to a source which the group consumes
// begins at its start.
func (s *startFinder) configuredStart(l *lane) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begin >= 0 {
		return l.begin, nil
	}
	t := s.topics[l.topic]
	if s.c.knownSources[l.topic].lacks(l.partition) {
		start, _, err := t.logs.Of(l.topic, l.partition)
		return start, err
	}
	if t.optionErr != nil && !cluster.IsPartial(t.optionErr) {
		return 0, fmt.Errorf("list of start offsets: %w", t.optionErr)
	}
	begin, err := cluster.OffsetIn(t.option, l.topic, l.partition)
	if err == nil {
		l.begin = begin
	}
	return begin, err
}

// deferStart has the fetch of a lane pause whose start is not known.
func (c *Consumer) deferStart(l *lane, why error) {
	l.setWhy("waiting to learn where it starts: " + why.Error())
	l.mu.Lock()
	l.startUnknown = true
	l.source.full.Store(true)
	l.mu.Unlock()
	c.sourcePauser.apply(&l.source.fetch)
}

// startFound ends the pause of lanes that were postponed, if they were, since their start is known.
func (c *Consumer) startFound(lanes ...*lane) {
	var found []*fetch
	for _, l := range lanes {
		l.mu.Lock()
		if l.startUnknown {
			l.startUnknown = false
			l.source.full.Store(false)
			found = append(found, &l.source.fetch)
		}
		l.mu.Unlock()
	}
	c.sourcePauser.apply(found...)
}

// awaitStarts finds the starts of lanes that were postponed, and opens the lanes, each as soon as
// it is known.
func (c *Consumer) awaitStarts(lanes []*lane) {
	c.retry(c.ctx, "finding where partitions start", func() error {
		lanes = slices.DeleteFunc(lanes, func(l *lane) bool { return !l.awaitsStart() })
		if len(lanes) == 0 {
			return nil
		}
		starts := c.findStarts(c.ctx, lanes, c.committedOf(c.ctx, lanes))
		found := map[*lane]startPosition{}
		var failures []error
		for _, l := range lanes {
			at, err := starts.of(l)
			if err != nil {
				l.setWhy("waiting to learn where it starts: " + err.Error())
				failures = append(failures, err)
				continue
			}
			found[l] = at
		}
		if len(found) > 0 {
			var ready []*lane
			c.source.betweenPolls(func() { ready = c.startDeferred(found) })
			lanes = slices.DeleteFunc(lanes, func(l *lane) bool { return slices.Contains(ready, l) })
			c.wg.Go(func() { c.startLanes(ready) })
			if len(ready) < len(found) {
				failures = append(failures, errors.New("the client has not been assigned all of the partitions yet"))
			}
		}
		return joinFew(failures)
	})
}

// startDeferred has lanes that were postponed begin where they stand. It runs in a turn of the
// source's poll loop. It returns those of which kgo knows the partition as assigned: what it is
// told of another one it ignores.
func (c *Consumer) startDeferred(found map[*lane]startPosition) (begun []*lane) {
	set := map[string]map[int32]kgo.EpochOffset{}
	for l, at := range found {
		if !l.awaitsStart() {
			delete(found, l)
			continue
		}
		l.mu.Lock()
		if l.positionsLoaded { // in an earlier session
			at.next = kgo.EpochOffset{Epoch: -1, Offset: l.source.tracker.Next}
			found[l] = at
		}
		l.mu.Unlock()
		if set[l.topic] == nil {
			set[l.topic] = map[int32]kgo.EpochOffset{}
		}
		set[l.topic][l.partition] = at.next
	}
	c.group.SetOffsets(set)
	taken := c.group.CommittedOffsets()
	for l, at := range found {
		if got, ok := taken[l.topic][l.partition]; !ok || got.Offset != at.next.Offset {
			continue
		}
		l.setStart(at)
		l.mu.Lock()
		l.intake = intakeOpen
		l.mu.Unlock()
		begun = append(begun, l)
	}
	c.startFound(begun...)
	return begun
}
