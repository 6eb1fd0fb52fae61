package consumer

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
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
			all = append(all, StuckHandler{Topic: a.from.topic, Partition: a.from.partition, Offset: a.off, Since: l.since})
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
			if a.reported.CompareAndSwap(false, true) {
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
