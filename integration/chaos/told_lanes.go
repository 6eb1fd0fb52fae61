package chaos

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// lineSlack is how long after the line about a restart the old lane may start a record.
const lineSlack = int64(time.Second)

// changes returns what happened to a lane from one time to another, both included.
func (t told) changes(lane tp, from, to int64) (all []laneChange) {
	n, _ := slices.BinarySearchFunc(t.lanes, from, func(c laneChange, at int64) int { return cmp.Compare(c.at, at) })
	for _, c := range t.lanes[n:] {
		if c.at > to {
			break
		}
		if c.lane == lane || c.lane == everyLane {
			all = append(all, c)
		}
	}
	return all
}

// renewed reports whether a lane began anew between the starts of two runs.
func (t told) renewed(lane tp, from, to int64) bool {
	return slices.ContainsFunc(t.changes(lane, from-lineSlack, to), func(c laneChange) bool { return c.what.begins() })
}

// begunBy returns when the lane began that ran records at a time; 0 if the journal does not say.
func (t told) begunBy(lane tp, at int64) (began int64) {
	for _, c := range t.changes(lane, 0, at) {
		if c.what.begins() {
			began = c.at
		}
	}
	return began
}

// lostLast returns when the process, which may have ended, last lost a lane; 0 if never.
func (t told) lostLast(lane tp, before, ended int64) (last int64) {
	owned := false
	for _, c := range append(t.changes(lane, 0, before), laneChange{at: ended}) {
		if owned && c.at < before {
			last = max(last, c.at)
		}
		owned = c.what.begins()
	}
	return last
}

// kept returns how many of a partition's lanes, begun by a time, were not handed over in order.
func (t told) kept(lane tp, by int64) (n int) {
	owned := false
	for _, c := range t.changes(lane, 0, by) {
		if owned && c.what != laneHandedOver {
			n++
		}
		owned = c.what.begins()
	}
	if owned {
		n++
	}
	return n
}

// handedOver returns when the lane was handed over in order that a run began and ended in; ok is
// false if it had another end, or none. If the membership is lost as a drain ends, both ends are
// told of.
func (t told) handedOver(r *run) (at int64, ok bool) {
	changes := t.changes(r.lane, r.start-lineSlack, math.MaxInt64)
	for i, c := range changes {
		switch {
		case c.at < r.start && (c.what == laneRestarted || c.what == laneReread):
			return 0, false // the run may be of the lane before
		case c.at >= r.start:
			lost := i+1 < len(changes) && changes[i+1].what == laneEnded
			return c.at, c.what == laneHandedOver && r.end != 0 && c.at >= r.end && !lost
		}
	}
	return 0, false
}

// suspected reports whether a run was of a suspect. A lane that begins anew forgets its suspects.
func (t told) suspected(r *run) bool {
	return slices.ContainsFunc(t.suspects, func(s suspects) bool {
		return s.feed == tp{r.topic, r.partition} && s.from <= r.offset && r.offset < s.to && s.at <= r.start+lineSlack &&
			(s.at > r.start || !slices.ContainsFunc(t.changes(r.lane, s.at, r.start), func(c laneChange) bool { return c.what.begins() }))
	})
}

// starved reports whether the member's timers were late for so long in a time.
func (t *told) starved(from, to int64, least time.Duration) bool {
	return overlap(t.late, from, to) >= least
}

// overlap is how much of a time lies in others, which do not overlap.
func overlap(others [][2]int64, from, to int64) (sum time.Duration) {
	for _, o := range others {
		sum += time.Duration(max(0, min(o[1], to)-max(o[0], from)))
	}
	return sum
}
