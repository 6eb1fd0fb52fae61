package consumer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// laneTable has the lanes that the member owns. It is safe for concurrent use.
type laneTable struct {
	mu        sync.Mutex
	lanes     map[topicPartition]*lane
	laneCount atomic.Int64 // of lanes
	// Closed lanes whose handlers had not returned when they were closed.
	abandoned []*lane
}

// lane returns the lane of a partition, nil if there is none.
func (t *laneTable) lane(topic string, partition int32) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes[topicPartition{topic, partition}]
}

// lanesNow returns all lanes.
func (t *laneTable) lanesNow() []*lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.lanes))
}

// lanesOn returns the lanes of a source.
func (t *laneTable) lanesOn(source string) []*lane {
	return slices.DeleteFunc(t.lanesNow(), func(l *lane) bool { return l.topic != source })
}

// pick returns the lanes of the table that which selects; the caller holds the table's lock.
func (t *laneTable) pick(which func(*lane) bool) (all []*lane) {
	for _, l := range t.lanes {
		if which(l) {
			all = append(all, l)
		}
	}
	return all
}

// countLanes counts the lanes anew; the caller holds the lock.
func (t *laneTable) countLanes() { t.laneCount.Store(int64(len(t.lanes))) }

// share returns a lane's share of a budget of the process.
func (t *laneTable) share(of int64) int64 { return of / max(t.laneCount.Load(), 1) }

// addAbandoned keeps a closed lane whose handlers still run.
func (t *laneTable) addAbandoned(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abandoned = append(slices.DeleteFunc(t.abandoned, func(l *lane) bool { return len(l.running()) == 0 }), l)
}

// abandonedRun reports whether handlers of lanes run that were just closed, and whether others do,
// which ignore that.
func (t *laneTable) abandonedRun(now time.Time) (ending, late bool) {
	t.mu.Lock()
	former := slices.Clone(t.abandoned)
	t.mu.Unlock()
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
