package consumer

import (
	"maps"
	"slices"
	"time"
)

func (c *Consumer) lane(topic string, partition int32) *lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lanes[topicPartition{topic, partition}]
}

func (c *Consumer) lanesNow() []*lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.lanes))
}

// lanesOn returns the lanes of a source.
func (c *Consumer) lanesOn(source string) []*lane {
	return slices.DeleteFunc(c.lanesNow(), func(l *lane) bool { return l.topic != source })
}

// pick returns the lanes of the table that which selects; the caller holds the table's lock.
func (c *Consumer) pick(which func(*lane) bool) (all []*lane) {
	for _, l := range c.lanes {
		if which(l) {
			all = append(all, l)
		}
	}
	return all
}

// remove removes lanes from the table, if still there, and their tiers from the retry client.
func (c *Consumer) remove(lanes []*lane) {
	if len(lanes) == 0 {
		return
	}
	c.mu.Lock()
	for _, l := range lanes {
		at := topicPartition{l.topic, l.partition}
		if c.lanes[at] == l {
			delete(c.lanes, at)
		}
	}
	c.countLanes()
	c.mu.Unlock()
	c.retryPoll.remove(lanes)
}

func (c *Consumer) countLanes() { c.laneCount.Store(int64(len(c.lanes))) }

// share returns a lane's share of a budget of the process.
func (c *Consumer) share(of int64) int64 { return of / max(c.laneCount.Load(), 1) }

// addAbandoned keeps a closed lane whose handlers still run.
func (c *Consumer) addAbandoned(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = append(slices.DeleteFunc(c.abandoned, func(l *lane) bool { return len(l.running()) == 0 }), l)
}

// abandonedRun reports whether handlers of lanes run that were just closed, and whether others do,
// which ignore that.
func (c *Consumer) abandonedRun(now time.Time) (ending, late bool) {
	c.mu.Lock()
	former := slices.Clone(c.abandoned)
	c.mu.Unlock()
	for _, l := range former {
		if len(l.running()) > 0 {
			over := now.Sub(l.since) > stuckAfter
			ending, late = ending || !over, late || over
		}
	}
	return ending, late
}

func contains(m map[string][]int32, l *lane) bool { return slices.Contains(m[l.topic], l.partition) }

// tiersOf returns the retry partitions of lanes.
func tiersOf(lanes []*lane) map[string][]int32 {
	all := map[string][]int32{}
	for _, l := range lanes {
		for _, f := range l.tiers() {
			if !f.parked.Retired() {
				all[f.topic] = append(all[f.topic], l.partition)
			}
		}
	}
	return all
}

func sourcesOf(lanes []*lane) map[string][]int32 {
	all := map[string][]int32{}
	for _, l := range lanes {
		all[l.topic] = append(all[l.topic], l.partition)
	}
	return all
}
