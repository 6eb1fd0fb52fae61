package check

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// condemned reports whether a letter's record kills nothing, and was taken for one that does: while
// it ran alone, or was to, its process was killed from outside, or lost its membership and with it
// the lane; or its handler ignored its timeout, and another record killed the process. The next
// owner cannot tell that from a death by the record.
func (ev *evidence) condemned(r *record, c *copied) bool {
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
	for name, t := range ev.told {
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
