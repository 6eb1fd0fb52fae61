package consumer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// compareEvery is how often the states of the lanes are compared with what the hooks were told last.
const compareEvery = 500 * time.Millisecond

// lookout is what the hooks were told of the lanes. A partition that is assigned anew has another lane.
type lookout map[*lane]State

// compareLanes tells the hooks of lanes that are in another state than before. It has a ticker of its own: the coarse clock
// rests when no handler runs, which is when a lane is blocked.
func (c *Consumer) compareLanes(ctx context.Context) {
	t := time.NewTicker(compareEvery)
	defer t.Stop()
	known := lookout{}
	for {
		select {
		case <-ctx.Done():
			c.tell(known.compare(c.lanesNow())) // all are gone by now
			return
		case <-t.C:
			c.tell(known.compare(c.lanesNow()))
		}
	}
}

// compare notes the states of the lanes and returns what has changed: first the lanes that are gone.
func (known lookout) compare(lanes []*lane) (changes []LaneChange) {
	now := time.Now()
	seen := lookout{}
	for _, l := range lanes {
		h, ok := l.health(now)
		if !ok {
			continue
		}
		seen[l] = h.State
		if from := known[l]; from != h.State {
			changes = append(changes, LaneChange{Topic: l.topic, Partition: l.partition, From: from, To: h.State, Since: h.Since, Why: h.Why})
		}
	}
	for l, from := range known {
		if _, there := seen[l]; !there {
			changes = append(changes, LaneChange{Topic: l.topic, Partition: l.partition, From: from, Since: now})
		}
	}
	clear(known)
	maps.Copy(known, seen)
	slices.SortFunc(changes, func(a, b LaneChange) int {
		return cmp.Or(cmp.Compare(min(len(a.To), 1), min(len(b.To), 1)), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return changes
}

func (c *Consumer) tell(changes []LaneChange) {
	for _, e := range changes {
		for _, hook := range c.hooks.laneState {
			c.call("OnLaneState", func() { hook.OnLaneState(e) })
		}
	}
}
