package check

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// during reports whether a fault of some kind was on in a time.
func (ev *evidence) during(is func(trace.Window) bool, from, to int64) bool {
	return slices.ContainsFunc(ev.windows, func(w trace.Window) bool { return is(w) && w.From < to && w.To > from })
}

// infra reports whether brokers or networks failed in a time.
func (ev *evidence) infra(from, to int64) bool {
	return ev.during(func(w trace.Window) bool { return w.Infra }, from, to)
}

// parted reports whether brokers or networks may have parted a member from its group in a time.
func (ev *evidence) parted(from, to int64) bool {
	return ev.during(func(w trace.Window) bool { return w.Parts }, from, to)
}

// brokersEnded reports whether the brokers ended when a run began or before it, as its record may
// have been read already. The embedded ones may have shown a record that they did not keep, nor
// acknowledge.
func (ev *evidence) brokersEnded(r *trace.Run) bool {
	const shortly, buffered = int64(5 * time.Second), int64(time.Minute)
	return ev.during(func(w trace.Window) bool { return w.Kind == "restart" || w.Kind == "older" }, r.Start-buffered, r.Start+shortly)
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
	from -= int64(m.Job.Service.Policy.Session + m.Job.Service.Policy.DrainTimeout)
	for _, other := range ev.members {
		if other.Service != m.Service {
			continue
		}
		if other.Began > from && other.Began < to || other.Ended > from && other.Ended < to || other.StoodStill(from, to) {
			return true
		}
	}
	return ev.parted(from, to)
}

// zombie reports whether the run's member may not have known that its lane is another's: it was
// suspended, or parted from its group, shortly before or in the run.
func (ev *evidence) zombie(r *trace.Run) bool {
	for _, s := range ev.members[r.Member].Suspended {
		if s[0] <= ev.until(r) && s[1]+learns >= r.Start {
			return true
		}
	}
	return ev.parted(r.Start-learns, ev.until(r))
}

// stoodStill reports whether a member was suspended in a time.
func (ev *evidence) stoodStill(name string, from, to int64) bool {
	m := ev.members[name]
	return m != nil && m.StoodStill(from, to)
}

// until is when a run ended; of one whose process died, when that died.
func (ev *evidence) until(r *trace.Run) int64 {
	if r.End != 0 {
		return r.End
	}
	if m := ev.members[r.Member]; m.Ended != 0 {
		return m.Ended
	}
	return time.Now().UnixNano()
}

// killedFromOutside reports whether a fault, and no record, ended a run's process while it ran, or
// before its copy was safe.
func (ev *evidence) killedFromOutside(r *trace.Run) bool {
	m := ev.members[r.Member]
	return m.Killed && m.Asked && m.Ended >= r.Start && m.Ended-ev.until(r) < int64(2*time.Second)
}

// expelled reports whether a run's process may have lost its membership in it, or shortly after it.
func (ev *evidence) expelled(r *trace.Run) bool {
	to := ev.until(r) + int64(2*time.Second)
	return ev.parted(r.Start, to) || ev.members[r.Member].StoodStill(r.Start, to)
}

// blamed reports whether a letter's record kills nothing, and was taken for one that does: while
// it ran alone, or was to, its process was killed from outside, or lost its membership and with it
// the lane; or its handler ignored its timeout, and another record killed the process. The next
// owner cannot distinguish that from a death by the record.
func (ev *evidence) blamed(r *record, c *copied) bool {
	if c.meta.Reason != headers.Reason(trace.ReasonCrashLoop) || r.script.Kills() {
		return false
	}
	return slices.ContainsFunc(r.runs, func(x *trace.Run) bool {
		return ev.killedFromOutside(x) || ev.expelled(x) || x.End == 0 && ev.lateAt(x, ev.until(x))
	}) || lostToFault(ev, trace.TP{Topic: r.origin.Topic, Partition: r.origin.Partition}, c.meta.FailedAt.UnixNano())
}

// lostToFault reports whether a fault, and no record, took a lane from its last owner.
// A commit says that a record is to run alone; a journal has it only once it has begun.
func lostToFault(ev *evidence, lane trace.TP, before int64) bool {
	var last trace.Run // as if it had run then
	for name, t := range ev.journals {
		if at := t.LostLast(lane, before, ev.members[name].Ended); at > last.End {
			last = trace.Run{Member: name, Start: at, End: at}
		}
	}
	return last.End != 0 && (ev.killedFromOutside(&last) || ev.zombie(&last))
}

// lateAt reports whether a run ignored its timeout at a time.
func (ev *evidence) lateAt(x *trace.Run, at int64) bool {
	return at-x.Start > int64(ev.members[x.Member].Job.Service.Policy.HandlerTimeout+time.Second) && ev.until(x) >= at
}
