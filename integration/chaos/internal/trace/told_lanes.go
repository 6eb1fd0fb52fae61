package trace

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// LineSlack is how long after the line about a restart the old lane may start a record.
const LineSlack = int64(time.Second)

// Changes returns what happened to a lane from one time to another, both included.
func (t Told) Changes(lane TP, from, to int64) (all []LaneChange) {
	n, _ := slices.BinarySearchFunc(t.Lanes, from, func(c LaneChange, at int64) int { return cmp.Compare(c.At, at) })
	for _, c := range t.Lanes[n:] {
		if c.At > to {
			break
		}
		if c.Lane == lane || c.Lane == EveryLane {
			all = append(all, c)
		}
	}
	return all
}

// Renewed reports whether a lane began anew between the starts of two runs.
func (t Told) Renewed(lane TP, from, to int64) bool {
	return slices.ContainsFunc(t.Changes(lane, from-LineSlack, to), func(c LaneChange) bool { return c.What.Begins() })
}

// BegunBy returns when the lane began that ran records at a time; 0 if the journal does not say.
func (t Told) BegunBy(lane TP, at int64) (began int64) {
	for _, c := range t.Changes(lane, 0, at) {
		if c.What.Begins() {
			began = c.At
		}
	}
	return began
}

// LostLast returns when the process, which may have ended, last lost a lane; 0 if never.
func (t Told) LostLast(lane TP, before, ended int64) (last int64) {
	owned := false
	for _, c := range append(t.Changes(lane, 0, before), LaneChange{At: ended}) {
		if owned && c.At < before {
			last = max(last, c.At)
		}
		owned = c.What.Begins()
	}
	return last
}

// Kept returns how many of a partition's lanes, begun by a time, were not handed over in order.
func (t Told) Kept(lane TP, by int64) (n int) {
	owned := false
	for _, c := range t.Changes(lane, 0, by) {
		if owned && c.What != LaneHandedOver {
			n++
		}
		owned = c.What.Begins()
	}
	if owned {
		n++
	}
	return n
}

// HandedOver returns when the lane was handed over in order that a run began and ended in; ok is
// false if it had another end, or none. If the membership is lost as a drain ends, both ends are
// told of.
func (t Told) HandedOver(r *Run) (at int64, ok bool) {
	changes := t.Changes(r.Lane, r.Start-LineSlack, math.MaxInt64)
	for i, c := range changes {
		switch {
		case c.At < r.Start && (c.What == LaneRestarted || c.What == LaneReread):
			return 0, false // the run may be of the lane before
		case c.At >= r.Start:
			lost := i+1 < len(changes) && changes[i+1].What == LaneEnded
			return c.At, c.What == LaneHandedOver && r.End != 0 && c.At >= r.End && !lost
		}
	}
	return 0, false
}

// Suspected reports whether a run was of a suspect. A lane that begins anew forgets its suspects.
func (t Told) Suspected(r *Run) bool {
	return slices.ContainsFunc(t.Suspects, func(s Suspects) bool {
		return s.Feed == TP{r.Topic, r.Partition} && s.From <= r.Offset && r.Offset < s.To && s.At <= r.Start+LineSlack &&
			(s.At > r.Start || !slices.ContainsFunc(t.Changes(r.Lane, s.At, r.Start), func(c LaneChange) bool { return c.What.Begins() }))
	})
}

// Starved reports whether the member's timers were late for so long in a time.
func (t *Told) Starved(from, to int64, least time.Duration) bool {
	return Overlap(t.late, from, to) >= least
}

// Overlap is how much of a time lies in others, which do not overlap.
func Overlap(others [][2]int64, from, to int64) (sum time.Duration) {
	for _, o := range others {
		sum += time.Duration(max(0, min(o[1], to)-max(o[0], from)))
	}
	return sum
}
