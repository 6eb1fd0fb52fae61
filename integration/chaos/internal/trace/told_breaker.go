package trace

import (
	"cmp"
	"slices"
)

// StateAt returns the state of a member's breaker at a time, and since when it has it.
func (t Told) StateAt(at int64) BreakerState {
	n, _ := slices.BinarySearchFunc(t.Breakers, at, func(b BreakerState, at int64) int {
		return cmp.Or(cmp.Compare(b.At, at), -1)
	})
	if n == 0 {
		return BreakerState{To: "closed"}
	}
	return t.Breakers[n-1]
}

// Opened reports whether the breaker was open in some part of a time: a failed probe is no attempt,
// and a record that waits in place returns to its feed.
func (t Told) Opened(from, to int64) bool {
	return t.StateAt(from).To == "held" || slices.ContainsFunc(t.Breakers, func(b BreakerState) bool { return b.To == "held" && b.At >= from && b.At <= to })
}
