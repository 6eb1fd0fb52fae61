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
		lh, ok := l.health(now)
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
	return h
}

// watch logs each attempt that ignores its timeout, once.
func (c *Consumer) watch() {
	now := time.Now()
	for _, l := range c.lanesNow() {
		l.mu.Lock()
		a := l.stuckAttempt(now)
		l.mu.Unlock()
		if a != nil && a.reported.CompareAndSwap(false, true) {
			c.recordLog.add(recordKind{event: eventOverdue, topic: l.topic}, a.example("timeout", l.policy.HandlerTimeout))
		}
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
