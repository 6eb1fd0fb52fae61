package topicmonitor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// Owner uses the topics. Its methods are called on the goroutine of Loop. Only Describe may wait.
type Owner interface {
	// Uses returns the topics to watch, by name.
	Uses() map[string]Use
	// Describe asks a broker about topics. It logs an error.
	Describe(ctx context.Context, topics []string) (map[string]cluster.Topic, error)
	// Sized is called after each poll that finds the topic. before is its number of partitions at
	// the poll before, 0 if none found it yet.
	Sized(t *Topic, before int32)
	// Missing is called when a topic does not exist: it was deleted, or never created.
	Missing(t *Topic)
	// Found is called when a missing topic exists.
	Found(t *Topic)
	// Recreated is called when a topic was deleted and recreated.
	Recreated(t *Topic)
	// Reread is called when a client has an outdated id of a topic, so that the clients must forget
	// the topic and read it again.
	Reread(t *Topic)
}

const (
	// pollEvery is how often topics are polled at most without a suspicion. New partitions of a
	// source are to begin within ten seconds, and the members learn of a rebalance by a heartbeat,
	// three seconds later.
	pollEvery = 5 * time.Second
	// pollSoon is how soon they are polled again while something changes. A broker learns of a
	// topic a moment after the controller created it. So a topic that a poll does not find counts
	// as missing only after missedPolls.
	pollSoon = 500 * time.Millisecond
	// missedPolls is how many polls in a row must miss a topic.
	missedPolls = 4
	// drainedGone is how long a drained tier has to be missing before it is retired. That is final,
	// and a restarting cluster may deny its topics for some seconds.
	drainedGone = 30 * time.Second
	// clearEvery bounds how often the clients are made to forget a topic whose id has not changed.
	clearEvery = 5 * time.Second
)

// Monitor watches topics. Its methods are safe for concurrent use; Loop runs once.
type Monitor struct {
	owner Owner
	wake  chan struct{} // capacity 1

	mu       sync.Mutex
	suspects map[string]bool // topics with a client's error; true: about the topic's id
	missing  map[string]bool // topics that do not exist

	known map[string]*Topic // belongs to the goroutine of Loop
}

// New makes a monitor that does nothing before Loop.
func New(owner Owner) *Monitor {
	return &Monitor{owner: owner, wake: make(chan struct{}, 1), suspects: map[string]bool{}, missing: map[string]bool{}, known: map[string]*Topic{}}
}

// Suspect polls a topic soon, if err may mean that it is missing or recreated.
func (m *Monitor) Suspect(topic string, err error) {
	if !errors.Is(err, kerr.UnknownTopicID) && !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.InconsistentTopicID) {
		return
	}
	m.mu.Lock()
	m.suspects[topic] = m.suspects[topic] || !errors.Is(err, kerr.UnknownTopicOrPartition)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Absent returns the topics that do not exist, sorted.
func (m *Monitor) Absent() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.missing))
}

// Loop polls until ctx ends. heartbeat is the interval of the member's heartbeats: where they are
// rarer than polls, polls are as rare, since changes of a group take a heartbeat anyway.
func (m *Monitor) Loop(ctx context.Context, heartbeat time.Duration) {
	every := max(pollEvery, heartbeat)
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-m.wake:
		}
		next := every
		if m.poll(ctx) {
			next = 0
		}
		select { // no poll is sooner, however many suspicions come
		case <-ctx.Done():
			return
		case <-time.After(pollSoon):
			t.Reset(next)
		}
	}
}

// poll compares what the brokers describe with what is known. It reports whether to poll again
// soon. A suspicion about an id remains until it is resolved, because the topic may be paused until
// then.
func (m *Monitor) poll(ctx context.Context) (soon bool) {
	m.mu.Lock()
	suspects := m.suspects
	m.suspects = map[string]bool{}
	m.mu.Unlock()

	uses := m.owner.Uses()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for topic, serious := range suspects {
			if _, used := uses[topic]; used && serious {
				m.suspects[topic], soon = true, true
			}
		}
	}()
	now, err := m.owner.Describe(ctx, slices.Collect(maps.Keys(uses)))
	if err != nil {
		return false // the next poll tries again, soon if there is a suspicion
	}
	for _, topic := range slices.Sorted(maps.Keys(uses)) {
		t := m.known[topic]
		if t == nil {
			t = &Topic{Name: topic, former: map[kadm.TopicID]bool{}}
			m.known[topic] = t
		}
		t.Use = uses[topic]
		resolved, again := m.compare(t, now[topic], suspects[topic])
		if resolved {
			delete(suspects, topic)
		}
		soon = soon || again
	}
	return soon
}

// compare compares a topic with a broker's description. It reports whether that resolves a
// suspicion, and whether to poll again soon.
func (m *Monitor) compare(t *Topic, now cluster.Topic, suspected bool) (resolved, soon bool) {
	switch {
	case errors.Is(now.Err, kerr.UnknownTopicOrPartition):
		return m.miss(t)
	case now.Err != nil:
		return false, false
	case t.missed >= missedPolls && !t.Use.Optional:
		m.mu.Lock()
		delete(m.missing, t.Name)
		m.mu.Unlock()
		m.owner.Found(t)
	}
	before := t.Size
	t.missed, t.Size = 0, now.Partitions
	m.owner.Sized(t, before)
	switch {
	case t.former[now.ID]:
		return false, true
	case t.ID == kadm.TopicID{} && now.ID != kadm.TopicID{}:
		t.ID = now.ID
	case t.ID != now.ID && now.ID != kadm.TopicID{}:
		t.former[t.ID] = true
		t.ID, t.cleared = now.ID, time.Now()
		m.owner.Recreated(t)
		if t.Use.Kind == Drained { // the group has no records in the new topic
			delete(m.known, t.Name)
		}
		return true, false
	case !suspected || t.Revoking.Load() || time.Since(t.cleared) < clearEvery:
		// There is nothing to do, or not before this condition ends.
	default:
		// A client has another id than the brokers: it learned of the topic from a broker that
		// lagged.
		t.cleared = time.Now()
		m.owner.Reread(t)
		return true, false
	}
	return false, false
}

// miss counts a poll that did not find a topic. After enough of them it reports the topic as
// missing.
func (m *Monitor) miss(t *Topic) (resolved, soon bool) {
	if t.missed++; t.missed == 1 {
		t.absent = time.Now()
	}
	drained := t.Use.Kind == Drained
	switch {
	case t.missed < missedPolls, drained && time.Since(t.absent) < drainedGone:
		return false, true
	case drained:
		m.owner.Missing(t)
		delete(m.known, t.Name)
	case t.missed == missedPolls && !t.Use.Optional:
		m.mu.Lock()
		m.missing[t.Name] = true
		m.mu.Unlock()
		m.owner.Missing(t)
	}
	return true, false // Found has the topic read again
}
