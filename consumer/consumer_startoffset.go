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
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// The start of a source partition depends on the group's coordinator, the partition's leader and
// the coordinators of former groups. A partition whose start cannot be found (it has no leader, a
// permission was revoked) must not delay the others. So kgo is given a placeholder offset and the
// partition is paused. Once the start is known, kgo is given that.

// startFinder holds the brokers' answers about the starts of source partitions. A failed query
// delays only the lanes that need its answer. See DESIGN.md, "Where a partition starts".
type startFinder struct {
	c         *Consumer
	committed func(*lane) (cluster.Offset, error)
	former    cluster.Former
	topics    map[string]*topicStarts
}

// topicStarts holds the answers about one topic. Each topic is queried alone, because a broker
// refuses a whole query if the permission to see one of its topics is missing.
type topicStarts struct {
	logs      cluster.Bounds
	option    kadm.ListedOffsets // where Config.Start puts partitions
	optionErr error
}

// laneStarter sets where the sources of lanes start.
type laneStarter struct{ *Consumer }

// findStarts queries where the lanes' sources start; committed returns a lane's committed offset.
func (c laneStarter) findStarts(ctx context.Context, lanes []*lane, committed func(*lane) (cluster.Offset, error)) *startFinder {
	ctx, cancel := context.WithTimeout(ctx, offsetsTimeout)
	defer cancel()
	fresh := sourcesOf(slices.DeleteFunc(slices.Clone(lanes), func(l *lane) bool {
		at, err := committed(l)
		return err != nil || at.Offset >= 0
	}))
	s := &startFinder{c: c.Consumer, committed: committed, topics: map[string]*topicStarts{}}
	var asking sync.WaitGroup
	for topic, partitions := range sourcesOf(lanes) {
		t := &topicStarts{}
		s.topics[topic] = t
		asking.Go(func() {
			// of returns the error for a lane that needs it
			t.logs, _ = c.cluster.Bounds(ctx, map[string][]int32{topic: partitions})
			if list := c.cfg.Start.list; list != nil && len(fresh[topic]) > 0 {
				t.option, t.optionErr = list(c.admin, ctx, topic)
			}
		})
	}
	s.former = c.cluster.FormerOffsets(ctx, c.cfg.FormerGroups, fresh)
	asking.Wait()
	return s
}

// of returns where a lane's source starts. With an error, the position is a placeholder that must
// not be read from.
func (s *startFinder) of(l *lane) (startPosition, error) {
	committed, err := s.committed(l)
	if err != nil {
		return beginAt(0), err
	}
	former, recreated, logs := s.former, s.c.isRecreated(l.topic), s.topics[l.topic].logs
	if recreated {
		former = nil // recreated while consumed: every record in the new topic is new
	}
	at := topicPartition{l.topic, l.partition}
	if s.c.isFromBefore(at, committed.Offset) {
		committed.Metadata = "" // it names records of the deleted topic
	}
	start, err := laneStarter{s.c}.findStart(at, committed, former, logs, func() (int64, error) { return s.configuredStart(l, recreated) })
	if committed.Offset >= 0 {
		s.c.warnStaleOffset(at, committed.Offset, start.next.Offset, logs)
	}
	return start, err
}

// findStart returns where a partition starts: at the group's committed offset, else at that of a
// former group, else where fresh says. With an error, the position is a placeholder.
func (c laneStarter) findStart(at topicPartition, committed cluster.Offset, former cluster.Former, logs cluster.Bounds, fresh func() (int64, error)) (startPosition, error) {
	if committed.Offset >= 0 {
		return c.resumeAt(at, committed, logs), nil
	}
	// Before the former groups' answer: their failure must not let a later StartLatest skip records
	// that are written meanwhile.
	begin, beginErr := fresh()
	left, known, err := former.Of(at.topic, at.partition)
	switch {
	case err != nil:
		return beginAt(0), err
	case known:
		start := c.resumeAt(at, left, logs)
		start.committed = -1
		// The former group's members may live: nothing says that they died.
		start.said.RunSingly()
		start.said.Process = 0
		return start, nil
	case beginErr != nil:
		return beginAt(0), beginErr
	}
	return beginAt(begin), nil
}

// resumeAt returns where a partition starts that has a committed offset. What the commit says holds
// also where retention has deleted records beyond that offset, but for another log.
func (c laneStarter) resumeAt(at topicPartition, committed cluster.Offset, logs cluster.Bounds) startPosition {
	start := beginAt(committed.Offset)
	start.next.Offset, start.committed = c.clampToLog(logs, at.topic, at.partition, committed.Offset)
	if start.next.Offset < committed.Offset {
		return start
	}
	start.said, _ = offsets.ParseMetadata(committed.Metadata, committed.Offset)
	start.epoch = committed.Epoch
	if start.next.Offset == committed.Offset {
		start.next.Epoch = committed.Epoch
	}
	if _, last, err := logs.Of(at.topic, at.partition); err == nil {
		start.end = last
	}
	return start
}

// configuredStart returns where Config.Start puts a partition. The lane keeps the first answer:
// StartLatest means the end at the first query. A partition of a recreated source begins at its
// start, and so does one that was added to a source which the group already consumes.
func (s *startFinder) configuredStart(l *lane, recreated bool) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begin >= 0 && !recreated {
		return l.begin, nil
	}
	t := s.topics[l.topic]
	if recreated || s.c.knownSources[l.topic].lacks(l.partition) {
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

// deferStart pauses the fetch of a lane whose start is not known.
func (c laneStarter) deferStart(l *lane, why error) {
	l.setWhy("waiting to learn where it starts: " + why.Error())
	l.mu.Lock()
	l.startUnknown = true
	l.source.full.Store(true)
	l.mu.Unlock()
	c.sourcePauser.apply(&l.source.fetch)
}

// startFound resumes the fetches of those lanes that deferStart paused.
func (c laneStarter) startFound(lanes ...*lane) {
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

// awaitStarts finds the starts of deferred lanes, and starts each lane as soon as its start is
// known.
func (c laneStarter) awaitStarts(lanes []*lane) {
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

// startDeferred sets deferred lanes to their starts. It runs in a turn of the source's poll loop.
// It returns the lanes whose partitions took the start. Others wait: kgo has yet to ask where their
// partitions start, or ignores an offset because it does not have the partition now.
func (c laneStarter) startDeferred(found map[*lane]startPosition) (begun []*lane) {
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
		if l.intake == intakeReseeking { // kgo has asked, and was given a placeholder
			put(set, l.topic, l.partition, at.next)
		}
		l.mu.Unlock()
	}
	c.group.SetOffsets(set)
	uncommitted, committed := c.group.UncommittedOffsets(), c.group.CommittedOffsets()
	for l, at := range found {
		t, p, next := l.topic, l.partition, at.next
		if has(set, t, p, next) && (has(uncommitted, t, p, next) || has(committed, t, p, next)) {
			l.setStart(at)
			l.mu.Lock()
			l.intake = intakeOpen
			l.mu.Unlock()
			begun = append(begun, l)
		}
	}
	c.startFound(begun...)
	return begun
}
