package check

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// evidence is all that the checker knows of a run: journals, topics, samples of offsets, metrics,
// and what was done to the members.
type evidence struct {
	services  []*served
	acked     map[int64]trace.Written
	lost      map[int64]bool // that the brokers had acknowledged
	older     []trace.OlderLog
	members   map[string]*trace.Member
	metrics   map[string]trace.Measured // of members that ended in order
	told      map[string]trace.Told     // by journals
	leaks     map[string]trace.Leaks
	alarms    map[string]string // what members' logs say of data races and panics
	windows   []trace.Window
	samples   []trace.Sample
	loaded    int64 // when the load ended, in nanoseconds
	unsettled map[trace.TP]string
	died      []*trace.Member // by themselves
	recovers  time.Duration   // in which a topic is back at its speed after an outage
}

// membersOf returns the names of a group's members, in order.
func (ev *evidence) membersOf(group string) (names []string) {
	for name, m := range ev.members {
		if m.Job.Service.Group == group {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// cutAt returns the lowest offset of a partition that was lost with the end of a log, and whether
// one was. Beyond it, an offset has had two records.
func (ev *evidence) cutAt(at trace.TP) (from int64, ok bool) {
	for _, o := range ev.older {
		if o.TP == at && (!ok || o.From < from) {
			from, ok = o.From, true
		}
	}
	return from, ok
}

// isCut reports whether an offset lies beyond the end of an older log.
func (ev *evidence) isCut(at trace.TP, offset int64) bool {
	from, ok := ev.cutAt(at)
	return ok && offset >= from
}

// knows reports whether a sample's commit of a partition is about a record of it, and not about one
// that had the same offset and was lost with the end of the log. A commit has the leader epoch up
// to which its owner has read, and what was lost has a lower one than what was written since.
func (ev *evidence) knows(s *trace.Sample, at trace.TP, offset int64, d *delivered) bool {
	return !ev.isCut(at, offset) || d == nil || d.of == nil || s.Epochs[at] >= d.record().LeaderEpoch
}

// readAgain reports whether a partition that lost the end of its log was read again from where that
// was cut, or from its start, in a time: a journal says so.
func (ev *evidence) readAgain(at trace.TP, from, to int64) bool {
	if _, cut := ev.cutAt(at); !cut {
		return false
	}
	for _, t := range ev.told {
		if slices.ContainsFunc(t.Changes(at, from, to), func(c trace.LaneChange) bool { return c.What == trace.LaneRestarted || c.What == trace.LaneReread }) {
			return true
		}
	}
	return false
}
