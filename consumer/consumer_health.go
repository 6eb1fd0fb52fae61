package consumer

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Health returns the state of the consumer, with every lane, sorted by topic and partition.
func (c *Consumer) Health() Health {
	h := Health{Started: isClosed(c.ready), Lanes: []LaneHealth{}, Missing: c.topics.Absent()}
	h.OK = len(h.Missing) == 0
	now := time.Now()
	group, ok := c.membership.Health(now)
	h.Group = GroupHealth(group)
	h.OK = h.OK && ok
	for _, l := range c.lanesNow() {
		lh, ok := inspection{l}.health(now)
		if !ok {
			continue
		}
		h.Lanes = append(h.Lanes, lh)
		switch lh.State {
		case StateBlocked, StateStuck, StateStopped:
			h.OK = false
		case StateStarting:
			h.OK = h.OK && now.Sub(lh.Since) <= startsWithin
		}
		if lh.Omitted > 0 {
			h.OK = false
		}
	}
	slices.SortFunc(h.Lanes, func(a, b LaneHealth) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	h.Topics = c.topicHealth(now)
	h.Stuck = c.outlasting(now)
	h.OK = h.OK && len(h.Stuck) == 0
	return h
}

// outlasting lists the handlers of former lanes that ignore their cancellation, the oldest first.
func (c *Consumer) outlasting(now time.Time) (all []StuckHandler) {
	c.mu.Lock()
	former := slices.Clone(c.abandoned)
	c.mu.Unlock()
	for _, l := range former {
		if now.Sub(l.since) <= stuckAfter {
			continue
		}
		for _, a := range l.running() {
			all = append(all, StuckHandler{Topic: a.in.from.topic, Partition: a.in.from.partition, Offset: a.off, Since: l.since})
		}
	}
	slices.SortFunc(all, func(a, b StuckHandler) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return all
}

// outlastingInterval is the interval of the lines about handlers of former lanes.
const outlastingInterval = time.Minute

// watch logs each attempt that ignores its timeout, once. Of handlers that outlasted their lanes it
// logs the number, again and again: what they keep from running grows.
func (c *Consumer) watch() {
	now := time.Now()
	for _, l := range c.lanesNow() {
		l.mu.Lock()
		all := inspection{l}.overdue(now)
		l.mu.Unlock()
		for _, a := range all {
			if a.rareParts().reported.CompareAndSwap(false, true) {
				c.recordLog.add(recordKind{event: eventOverdue, topic: l.topic}, a.example("timeout", l.policy.HandlerTimeout))
			}
		}
	}
	if all := c.outlasting(now); len(all) > 0 {
		c.throttle.Once("outlasting", outlastingInterval, func() {
			oldest := all[0]
			c.log.Error("siding: handlers outlast their lanes and hold slots of this process; a restart frees these",
				"handlers", len(all), "concurrency", c.cfg.Concurrency,
				"topic", oldest.Topic, "partition", oldest.Partition, "offset", oldest.Offset, "since", oldest.Since)
		})
	}
}

// HealthHandler serves the consumer's health over HTTP: JSON, with status 200 when it is OK and 503
// otherwise.
func (c *Consumer) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := c.Health()
		w.Header().Set("Content-Type", "application/json")
		if !h.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // the client has disconnected
	})
}

// observe observes the state of the consumer and its lanes.
func (c *Consumer) observe(o metric.Observer, g *gauges) {
	type tier struct{ topic, delay string }
	type held struct{ parked, due, gaps, lag int64 }
	var (
		tiers  = map[tier]held{}
		copies = map[string]int64{}
		states = map[State]int64{}
		stuck  int64
		due    = map[string]int64{}
		now    = time.Now()
		group  = semconv.MessagingConsumerGroupName(c.cfg.Group)
	)
	for _, l := range c.lanesNow() {
		h, ok := inspection{l}.health(now)
		if !ok {
			continue
		}
		states[h.State]++
		copies[l.topic] += int64(h.Forwards)
		l.mu.Lock()
		stuck += int64(len(inspection{l}.overdue(now)))
		due[l.topic] += 0
		if l.guard.HoldsRetries() {
			due[l.topic] += int64(l.heldRetries())
		}
		add := func(f *feed, parked int, due int64) {
			at := tier{l.topic, tierName(f.tier.Delay)}
			sum, ok := tiers[at]
			if !ok {
				sum.due = math.MaxInt64
			}
			sum.parked += int64(parked)
			sum.gaps += f.tracker.Next - f.tracker.Floor() - int64(f.tracker.Pending)
			sum.lag += max(f.end-f.tracker.Floor(), 0)
			sum.due = min(sum.due, due)
			tiers[at] = sum
		}
		add(&l.source.feed, 0, math.MaxInt64)
		for _, f := range l.tiers() {
			add(&f.feed, f.parked.Waiting(), f.parked.Due())
		}
		l.mu.Unlock()
	}
	for at, sum := range tiers {
		with := metric.WithAttributes(withTier(at.delay, semconv.MessagingDestinationName(at.topic), group)...)
		o.ObserveInt64(g.gaps, sum.gaps, with)
		o.ObserveInt64(g.lag, sum.lag, with)
		if at.delay == "" {
			continue
		}
		o.ObserveInt64(g.parked, sum.parked, with)
		if sum.due < math.MaxInt64 {
			o.ObserveInt64(g.oldest, sum.due/1000, with)
		}
	}
	for topic, n := range copies {
		o.ObserveInt64(g.inflight, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
	for state, n := range states {
		o.ObserveInt64(g.lanes, n, metric.WithAttributes(group, keyState.String(string(state))))
	}
	for topic, n := range due {
		o.ObserveInt64(g.waiting, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
	c.observeGuards(o, g, now)
	with := metric.WithAttributes(group)
	o.ObserveInt64(g.evicted, c.tierEnv.Budget.Evicted(), with)
	o.ObserveInt64(g.refetched, c.tierEnv.Budget.Refetched(), with)
	o.ObserveInt64(g.stuck, stuck+int64(len(c.outlasting(now))), with)
	h, _ := c.membership.Health(now)
	state, failing := "joining", int64(0)
	if h.Joined {
		state = "joined"
	}
	if !h.CommitsFailSince.IsZero() {
		failing = 1
	}
	o.ObserveInt64(g.members, 1, with, metric.WithAttributes(keyMember.String(state)))
	o.ObserveInt64(g.failing, failing, with)
}

// pollLaneStates notifies the hooks of lanes whose state has changed. It has a ticker of its own:
// the coarse clock stops when no handler runs, which is when a lane is blocked.
func (c *Consumer) pollLaneStates(ctx context.Context) {
	t := time.NewTicker(compareEvery)
	defer t.Stop()
	known := map[*lane]LaneHealth{} // a reassigned partition has another lane
	for {
		select {
		case <-ctx.Done():
			c.reportLaneChanges(known) // no lane is left
			return
		case <-t.C:
			known = c.reportLaneChanges(known)
		}
	}
}

// reportLaneChanges notifies the hooks of lanes whose state differs from known, closed lanes first.
// It returns the current states.
func (c *Consumer) reportLaneChanges(known map[*lane]LaneHealth) map[*lane]LaneHealth {
	now := time.Now()
	current := map[*lane]LaneHealth{}
	for _, l := range c.lanesNow() {
		if h, ok := (inspection{l}).health(now); ok {
			current[l] = h
		}
	}
	for l, was := range known {
		if _, here := current[l]; !here {
			c.hooks.reportLaneState(LaneChange{Topic: l.topic, Partition: l.partition, From: was.State, Since: now})
		}
	}
	for l, h := range current {
		if from := known[l].State; from != h.State {
			c.hooks.reportLaneState(LaneChange{Topic: l.topic, Partition: l.partition, From: from, To: h.State, Since: h.Since, Why: h.Why})
		}
	}
	return current
}

// compareEvery is the interval at which pollLaneStates compares the lanes' states.
const compareEvery = 500 * time.Millisecond

// blockedPoll is the interval at which logBlocked looks at the lanes. No event comes when a lane is
// blocked: nothing happens any more.
const blockedPoll = 5 * time.Second

// logBlocked logs, until ctx ends, that lanes became blocked and that they no longer are. All lanes
// that changed between two looks share a line: an unreachable broker blocks hundreds.
func (c *Consumer) logBlocked(ctx context.Context) {
	t := time.NewTicker(blockedPoll)
	defer t.Stop()
	logged := map[*lane]time.Time{} // since when
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			c.logBlockedChanges(now, logged)
		}
	}
}

// logBlockedChanges logs which lanes are blocked and not in logged, and the reverse. It updates it.
func (c *Consumer) logBlockedChanges(now time.Time, logged map[*lane]time.Time) {
	var began, ended []*lane
	var first time.Time
	var why string
	for _, l := range c.lanesNow() {
		laneMark{l}.look(now)
		since, because := inspection{l}.blocked(now)
		if _, known := logged[l]; known || because == "" {
			continue
		}
		if began = append(began, l); first.IsZero() || since.Before(first) {
			first, why = since, because
		}
		logged[l] = since
	}
	longest := time.Duration(0)
	for l, since := range logged {
		if _, because := (inspection{l}).blocked(now); because != "" {
			continue
		}
		delete(logged, l)
		if !l.closing() { // else the group revoked it, which has a line
			ended, longest = append(ended, l), max(longest, now.Sub(since))
		}
	}
	if len(began) > 0 {
		c.log.Warn("siding: lanes are blocked", "lanes", len(began), "blocked_now", len(logged), "since", first, "why", why,
			"partitions", partitionsText(sourcesOf(began)))
	}
	if len(ended) > 0 {
		c.log.Info("siding: lanes are no longer blocked", "lanes", len(ended), "blocked_now", len(logged), "lasted", longest,
			"partitions", partitionsText(sourcesOf(ended)))
	}
}
