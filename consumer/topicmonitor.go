package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicMonitor looks after the topics that a consumer uses: that they are there, and still the ones that it began with. A topic that is
// deleted and made anew has the old name and another id. kgo keeps to the id that it saw first and refuses the topic until it is
// told to forget it, since positions in the one log mean nothing in the other; here is who tells it, and has the lanes start anew.
//
// It looks every five seconds, and as soon as a client meets with another id or with none. It sees that a source grows, too, which kgo
// would learn within five minutes.
// See DESIGN.md, "Recreated topics".
type topicMonitor struct {
	c    *Consumer
	wake chan struct{} // has room for one

	mu       sync.Mutex
	suspects map[string]bool // that a client met with trouble about
	missing  map[string]bool // that do not exist

	known map[string]*knownTopic // the loop's
}

// knownTopic is a topic as it was found so far.
type knownTopic struct {
	id      kadm.TopicID
	size    int32                 // its partitions; none as long as it was never seen
	former  map[kadm.TopicID]bool // a broker that lags behind may still tell one of these
	missed  int                   // looks in a row that did not find it
	absent  time.Time             // the first of these
	cleared time.Time             // when the clients last forgot it
	handing atomic.Bool           // its lanes are being given up, so that the clients can forget it
}

const (
	// topicPollEvery is how often topics are looked at without a reason to. New partitions of a source are to begin within ten seconds, and
	// the members hear of a rebalance by a heartbeat, three seconds later.
	topicPollEvery = 5 * time.Second
	// topicPollSoon is how soon they are looked at again when something changes. A broker learns of a topic a moment after the
	// controller made it, so one that is not there counts as missing only after some looks.
	topicPollSoon = 500 * time.Millisecond
	// missedPolls is how many in a row.
	missedPolls = 4
	// drainedGone is how long a drained tier has to be missing before it is retired, which cannot be taken back: a cluster that
	// restarts may deny its topics for some seconds.
	drainedGone = 30 * time.Second
	// clearEvery bounds how often the clients are made to forget a topic whose id has not changed.
	clearEvery = 5 * time.Second
)

func newTopicMonitor(c *Consumer) *topicMonitor {
	return &topicMonitor{c: c, wake: make(chan struct{}, 1), suspects: map[string]bool{}, missing: map[string]bool{}, known: map[string]*knownTopic{}}
}

// Here is what becomes of the lanes of a topic that was deleted and made anew, or that the clients have to learn of again. See topics
// for how that is found.

// recreated sees to a topic that was deleted and made anew.
func (w *topicMonitor) recreated(topic string, u topicUse, id kadm.TopicID) {
	c := w.c
	switch u.kind {
	case usedDrained: // the group has nothing in the new one
		c.log.Info("siding: a retry topic that was drained was deleted and made anew", "retry_topic", topic, "source", u.source)
		c.dropDrained(topic, u.source)
		delete(w.known, topic)
		return
	case usedDLQ:
		c.log.Error("siding: a dead-letter topic was deleted and made anew; the dead letters that it held are gone", "topic", topic)
		return // the producer is told where a copy is refused
	case usedSource:
		c.log.Error("siding: a source topic was deleted and made anew; its lanes start anew, and records that they had not finished are gone with the old one", "topic", topic)
		c.mu.Lock()
		c.ids[topic] = id
		c.recreated[topic] = true
		c.mu.Unlock()
		c.rememberCommitted(topic)
		w.known[topic].handing.Store(false)
		if c.stop.Err() == nil {
			c.lose(func(l *lane) bool { return l.topic == topic })
			w.resubscribe(topic)
		}
		return
	case usedTier:
		c.log.Error("siding: a retry topic was deleted and made anew; its lanes start anew, and the records that were parked in the old one are gone", "topic", topic, "source", u.source)
	}
	w.rereadTopic(topic, u)
}

// rereadTopic has the clients forget what they know of a topic that they read, and start anew on it. A source's lanes are given up in order
// before: what they finished counts, since its log is the one that it was. A consumer that stops leaves it, and commits what is finished.
func (w *topicMonitor) rereadTopic(topic string, u topicUse) {
	c := w.c
	if c.stop.Err() != nil {
		return
	}
	switch k := w.known[topic]; u.kind {
	case usedSource:
		k.handing.Store(true)
		c.wg.Go(func() {
			c.revoke(c.ctx, func(l *lane) bool { return l.topic == topic })
			if k.handing.CompareAndSwap(true, false) { // else it was made anew meanwhile, and that was seen to
				w.resubscribe(topic)
			}
		})
	case usedTier:
		id := k.id
		c.betweenPolls(func() {
			anew := c.restartOn(u.source, topic, id)
			c.wg.Go(func() {
				c.retryPoll.reread(topic)
				c.startLanes(anew)
			})
		})
	case usedDrained:
		c.wg.Go(func() { c.retryPoll.reread(topic) })
	}
}

// resubscribe has the group client forget a source, and learn of it again when the group has taken it back.
func (w *topicMonitor) resubscribe(source string) {
	c := w.c
	if c.stop.Err() != nil {
		return
	}
	now := c.subscription.Leave(source, func() {
		c.group.PurgeTopicsFromConsuming(source) // kgo joins again without it
		c.group.ResumeFetchTopics(source)
	})
	if now {
		c.group.AddConsumeTopics(source)
	}
}

// suspect has a topic looked at soon if that may be what the error is about.
func (w *topicMonitor) suspect(topic string, err error) {
	if !errors.Is(err, kerr.UnknownTopicID) && !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.InconsistentTopicID) {
		return
	}
	w.mu.Lock()
	w.suspects[topic] = w.suspects[topic] || !errors.Is(err, kerr.UnknownTopicOrPartition)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// refused has a topic looked at soon, and not read until then, if that may be what the error of a fetch is about: kgo would ask for it
// again at once, and be refused again.
func (w *topicMonitor) refused(topic string, err error) {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) {
		w.reader(topic).PauseFetchTopics(topic)
		w.suspect(topic, err)
	}
}

// reader is the client that reads a topic.
func (w *topicMonitor) reader(topic string) *kgo.Client {
	if w.c.siblings[topic].Source != "" {
		return w.c.group
	}
	return w.c.retryCl
}

// absent lists the topics that do not exist, sorted.
func (w *topicMonitor) absent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.missing))
}

func (w *topicMonitor) setMissing(topic string, missing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if missing {
		w.missing[topic] = true
	} else {
		delete(w.missing, topic)
	}
}

// loop looks until ctx ends.
func (w *topicMonitor) loop(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-w.wake:
		}
		next := topicPollEvery
		if w.poll(ctx) {
			next = 0
		}
		select { // however many suspect something meanwhile
		case <-ctx.Done():
			return
		case <-time.After(topicPollSoon):
			t.Reset(next)
		}
	}
}

// poll compares what is there with what is known. It reports whether to look again soon. A suspicion stands until something was done
// about it: the topic may be paused for it, and nobody reads it until then.
func (w *topicMonitor) poll(ctx context.Context) (soon bool) {
	c := w.c
	w.mu.Lock()
	suspects := w.suspects
	w.suspects = map[string]bool{}
	w.mu.Unlock()

	uses := c.uses()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for topic, serious := range suspects {
			if _, used := uses[topic]; used && serious {
				w.suspects[topic], soon = true, true
			}
		}
	}()
	now, err := c.cluster.Describe(ctx, keys(uses))
	if err != nil {
		if ctx.Err() == nil {
			c.throttle.Once("look at topics", time.Minute, func() { c.log.Warn("siding: the topics could not be looked at", "error", err) })
		}
		return false // at the next look, which is soon where something is suspected
	}
	for _, topic := range slices.Sorted(maps.Keys(uses)) {
		k, t, use := w.known[topic], now[topic], uses[topic]
		if k == nil {
			k = &knownTopic{former: map[kadm.TopicID]bool{}}
			w.known[topic] = k
		}
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			if k.missed++; k.missed == 1 {
				k.absent = time.Now()
			}
			switch {
			case k.missed < missedPolls, use.kind == usedDrained && time.Since(k.absent) < drainedGone:
				soon = true
				continue
			case k.missed == missedPolls || use.kind == usedDrained:
				w.gone(topic, use, k.size > 0)
			}
			delete(suspects, topic) // it is read again when it is there
			continue
		case t.Err != nil:
			continue
		case k.missed >= missedPolls:
			c.log.Info("siding: a topic that was missing is there", "topic", topic)
			w.setMissing(topic, false)
			w.reader(topic).ResumeFetchTopics(topic)
		}
		k.missed = 0
		if t.Partitions > k.size && use.kind == usedSource {
			c.group.ForceMetadataRefresh() // under the classic protocol the group's leader has the new partitions assigned
		}
		k.size = t.Partitions
		switch {
		case k.former[t.ID]:
			soon = true
		case k.id == kadm.TopicID{} && t.ID != kadm.TopicID{}:
			k.id = t.ID
		case k.id != t.ID && t.ID != kadm.TopicID{}:
			k.former[k.id] = true
			k.id, k.cleared = t.ID, time.Now()
			w.recreated(topic, use, t.ID)
			delete(suspects, topic)
		case !suspects[topic] || k.handing.Load() || time.Since(k.cleared) < clearEvery:
			// There is nothing to do, or when that has passed.
		default:
			// A client has another id than the brokers: it learned of the topic from one that lagged behind.
			k.cleared = time.Now()
			w.rereadTopic(topic, use)
			delete(suspects, topic)
		}
		if use.kind == usedDrained {
			c.resized(use.source, topic, t.Partitions)
		}
	}
	return soon
}

// gone sees to a topic that does not exist, any more or as long as this process runs. It is not made from here: whoever deleted it may
// be about to.
func (w *topicMonitor) gone(topic string, u topicUse, seen bool) {
	switch u.kind {
	case usedDrained:
		w.c.log.Info("siding: a retry topic that was drained was deleted", "retry_topic", topic, "source", u.source)
		w.c.dropDrained(topic, u.source)
		delete(w.known, topic)
		return
	case usedSource:
		w.c.log.Error("siding: a source topic does not exist any more; its lanes wait until it is made again, the others go on. "+
			"If it is not to come back, take it out of Topics", "topic", topic)
	default:
		about := []any{"topic", topic, "used_as", u.kind.String(), "source", u.source}
		if seen {
			w.c.log.Error("siding: a topic was deleted, and what it held is gone; lanes that need it wait until it is made again. "+creationHint, about...)
		} else {
			w.c.log.Error("siding: a topic does not exist; lanes that need it wait until it is made. "+creationHint, about...)
		}
	}
	w.setMissing(topic, true)
	w.reader(topic).PauseFetchTopics(topic)
}

const creationHint = "A consumer that starts with Provision.Mode Create makes it; under Verify and Off, make it with as many partitions as its source has"
