package chaos

import (
	"cmp"
	"slices"
)

// stateAt returns the state of a member's breaker at a time, and since when it has it.
func (t told) stateAt(at int64) breakerState {
	n, _ := slices.BinarySearchFunc(t.breakers, at, func(b breakerState, at int64) int {
		return cmp.Or(cmp.Compare(b.at, at), -1)
	})
	if n == 0 {
		return breakerState{to: "closed"}
	}
	return t.breakers[n-1]
}

// opened reports whether the breaker was open in some part of a time: a failed probe is no attempt,
// and a record that waits in place returns to its feed.
func (t told) opened(from, to int64) bool {
	return t.stateAt(from).to == "held" || slices.ContainsFunc(t.breakers, func(b breakerState) bool { return b.to == "held" && b.at >= from && b.at <= to })
}
