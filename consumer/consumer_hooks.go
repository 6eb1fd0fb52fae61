package consumer

import (
	"context"
	"time"
)

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
