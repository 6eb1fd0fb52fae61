package consumer

import (
	"context"
	"time"
)

// pollLaneStates tells the hooks of lanes that are in another state than before. It has a ticker of
// its own: the coarse clock rests when no handler runs, which is when a lane is blocked.
func (c *Consumer) pollLaneStates(ctx context.Context) {
	t := time.NewTicker(compareEvery)
	defer t.Stop()
	known := map[*lane]State{} // a partition that is assigned again has another lane
	for {
		select {
		case <-ctx.Done():
			c.reportLaneChanges(known) // all lanes are gone by now
			return
		case <-t.C:
			known = c.reportLaneChanges(known)
		}
	}
}

// reportLaneChanges tells the hooks which lanes are in another state than known, those that are
// gone first, and returns the states.
func (c *Consumer) reportLaneChanges(known map[*lane]State) map[*lane]State {
	now := time.Now()
	current, changed := map[*lane]State{}, []LaneChange{}
	for _, l := range c.lanesNow() {
		h, ok := l.health(now)
		if !ok {
			continue
		}
		current[l] = h.State
		if from := known[l]; from != h.State {
			changed = append(changed, LaneChange{Topic: l.topic, Partition: l.partition, From: from, To: h.State, Since: h.Since, Why: h.Why})
		}
	}
	for l, from := range known {
		if _, here := current[l]; !here {
			c.hooks.reportLaneState(LaneChange{Topic: l.topic, Partition: l.partition, From: from, Since: now})
		}
	}
	for _, e := range changed {
		c.hooks.reportLaneState(e)
	}
	return current
}

// compareEvery is how often the states of the lanes are compared with what the hooks were told
// last.
const compareEvery = 500 * time.Millisecond
