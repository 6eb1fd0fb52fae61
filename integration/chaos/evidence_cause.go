package chaos

import (
	"slices"
	"time"
)

// during reports whether a fault of some kind was on in a time.
func (ev *evidence) during(is func(window) bool, from, to int64) bool {
	return slices.ContainsFunc(ev.windows, func(w window) bool { return is(w) && w.from < to && w.to > from })
}

// infra reports whether brokers or networks failed in a time.
func (ev *evidence) infra(from, to int64) bool {
	return ev.during(func(w window) bool { return w.infra }, from, to)
}

// parted reports whether brokers or networks may have parted a member from its group in a time.
func (ev *evidence) parted(from, to int64) bool {
	return ev.during(func(w window) bool { return w.parts }, from, to)
}

// brokersEnded reports whether the brokers ended when a run began or before it, as its record may
// have been read already. The embedded ones may have shown a record that they did not keep, nor
// acknowledge.
func (ev *evidence) brokersEnded(r *run) bool {
	const shortly, buffered = int64(5 * time.Second), int64(time.Minute)
	return ev.during(func(w window) bool { return w.kind == "restart" || w.kind == "older" }, r.start-buffered, r.start+shortly)
}

// learns is how long a member needs, once it runs again or reaches the brokers again, to learn that
// its lanes are another's. The client waits for up to 5 s before it repeats a heartbeat, and the
// first repetition may meet a connection that has died.
const learns = int64(11 * time.Second)

// disturbed reports whether a member may have lost a lane and got it again between two times: a
// member of its service came or went, or was suspended, or it was parted from its group.
func (ev *evidence) disturbed(name string, from, to int64) bool {
	m := ev.members[name]
	// The group learns of an end after the session, and then the others drain.
	from -= int64(m.job.Service.Policy.Session + m.job.Service.Policy.DrainTimeout)
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
	return ev.parted(from, to)
}

// zombie reports whether the run's member may not have known that its lane is another's: it was
// suspended, or parted from its group, shortly before or in the run.
func (ev *evidence) zombie(r *run) bool {
	for _, s := range ev.members[r.member].suspended {
		if s[0] <= ev.until(r) && s[1]+learns >= r.start {
			return true
		}
	}
	return ev.parted(r.start-learns, ev.until(r))
}

// stoodStill reports whether a member was suspended in a time.
func (ev *evidence) stoodStill(name string, from, to int64) bool {
	m := ev.members[name]
	return m != nil && slices.ContainsFunc(m.suspended, func(s [2]int64) bool { return s[0] < to && s[1] > from })
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

// killedFromOutside reports whether a fault, and no record, ended a run's process while it ran, or
// before its copy was safe.
func (ev *evidence) killedFromOutside(r *run) bool {
	m := ev.members[r.member]
	return m.killed && m.toEnd && m.ended >= r.start && m.ended-ev.until(r) < int64(2*time.Second)
}

// expelled reports whether a run's process may have lost its membership in it, or shortly after it.
func (ev *evidence) expelled(r *run) bool {
	to := ev.until(r) + int64(2*time.Second)
	return ev.parted(r.start, to) || slices.ContainsFunc(ev.members[r.member].suspended, func(s [2]int64) bool { return s[0] < to && s[1] > r.start })
}
