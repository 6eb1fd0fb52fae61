package chaos

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// condemned reports whether a letter's record kills nothing, and was taken for one that does: while
// it ran alone, or was to, its process was killed from outside, or lost its membership and with it
// the lane; or its handler ignored its timeout, and another record killed the process. The next
// owner cannot tell that from a death by the record.
func (ev *evidence) condemned(r *record, c *copied) bool {
	if c.meta.Reason != headers.Reason(reasonCrashLoop) || r.script.kills() {
		return false
	}
	return slices.ContainsFunc(r.runs, func(x *run) bool {
		return ev.killedFromOutside(x) || ev.expelled(x) || x.end == 0 && ev.lateAt(x, ev.until(x))
	}) || lostToFault(ev, tp{r.origin.Topic, r.origin.Partition}, c.meta.FailedAt.UnixNano())
}

// lostToFault reports whether a fault, and no record, took a lane from its last owner.
// A commit says that a record is to run alone; a journal has it only once it has begun.
func lostToFault(ev *evidence, lane tp, before int64) bool {
	var last run // as if it had run then
	for name, t := range ev.told {
		if at := t.lostLast(lane, before, ev.members[name].ended); at > last.end {
			last = run{member: name, start: at, end: at}
		}
	}
	return last.end != 0 && (ev.killedFromOutside(&last) || ev.zombie(&last))
}

// lateAt reports whether a run ignored its timeout at a time.
func (ev *evidence) lateAt(x *run, at int64) bool {
	return at-x.start > int64(ev.members[x.member].job.Service.Policy.HandlerTimeout+time.Second) && ev.until(x) >= at
}
