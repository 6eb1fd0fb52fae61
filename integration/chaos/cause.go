package chaos

import (
	"slices"
	"time"
)

// infra reports whether brokers or networks failed in a time.
func (ev *evidence) infra(from, to int64) bool {
	return slices.ContainsFunc(ev.windows, func(w window) bool { return kindNamed(w.kind).infra && w.from < to && w.to > from })
}

// disturbed reports whether a member may have lost a lane and got it again between two times: a
// member of its service came or went, or was suspended, or brokers failed.
func (ev *evidence) disturbed(name string, from, to int64) bool {
	m := ev.members[name]
	from -= int64(session + 10*time.Second) // what happened before may show late
	for _, other := range ev.members {
		if other.service != m.service {
			continue
		}
		if other.began > from && other.began < to || other.ended > from && other.ended < to {
			return true
		}
		for _, s := range other.suspended {
			if s[0] < to && s[1] > from {
				return true
			}
		}
	}
	return ev.infra(from, to)
}

// zombie reports whether the run's member may not have known that its lane is another's: it was
// suspended, or cut off from the brokers, shortly before.
func (ev *evidence) zombie(r *run) bool {
	slack := int64(5 * time.Second)
	for _, s := range ev.members[r.member].suspended {
		if s[0] <= r.start && s[1]+slack >= r.start || r.end != 0 && s[0] >= r.start && s[1] <= r.end {
			return true
		}
	}
	for _, w := range ev.windows {
		if kindNamed(w.kind).infra && w.from <= r.start && w.to+int64(session)+slack >= r.start {
			return true
		}
	}
	return false
}

// until is when a run ended; of one whose process died, when that died.
func (ev *evidence) until(r *run) int64 {
	if r.end != 0 {
		return r.end
	}
	if m := ev.members[r.member]; m.ended != 0 {
		return m.ended
	}
	return time.Now().UnixNano()
}
