package check

import (
	"cmp"
	"iter"
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
	journals  map[string]trace.Logged
	leaks     map[string]trace.Leaks
	alarms    map[string]string // what members' logs say of data races and panics
	windows   []trace.Window
	samples   []trace.Sample
	loaded    int64 // when the load ended, in nanoseconds
	unsettled map[trace.TP]string
	died      []*trace.Member // by themselves
	settles   time.Duration   // in which a floor moves in a healthy cluster
	recovers  time.Duration   // in which a topic is back at its speed after an outage
}

// samplesOf returns the samples of a group, in order.
func (ev *evidence) samplesOf(group string) (all []*trace.Sample) {
	for i := range ev.samples {
		if s := &ev.samples[i]; s.Group == group {
			all = append(all, s)
		}
	}
	return all
}

// records are those of all services, each with its service.
func (ev *evidence) records() iter.Seq2[*served, *record] {
	return func(yield func(*served, *record) bool) {
		for _, s := range ev.services {
			for _, r := range s.records {
				if !yield(s, r) {
					return
				}
			}
		}
	}
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
	for _, t := range ev.journals {
		if slices.ContainsFunc(t.Changes(at, from, to), func(c trace.LaneChange) bool { return c.What == trace.LaneRestarted || c.What == trace.LaneReread }) {
			return true
		}
	}
	return false
}

// calms are the times in which nothing but some faults was done to anything, and what was done
// before is over. No member of the service was killed by a record then.
func (ev *evidence) calms(s *served, from, to int64, least time.Duration, but ...string) (all [][2]int64) {
	var busy []trace.Window
	for _, w := range ev.windows {
		if slices.Contains(but, w.Kind) {
			continue
		}
		if w.Down {
			w.To += int64(ev.recovers)
		}
		busy = append(busy, w)
	}
	for _, m := range ev.died {
		if m.Job.Service.Group == s.Group {
			busy = append(busy, trace.Window{Kind: "died", From: m.Ended, To: m.Ended})
		}
	}
	slices.SortFunc(busy, func(a, b trace.Window) int { return cmp.Compare(a.From, b.From) })
	for _, w := range busy {
		if w.From-from > int64(least) {
			all = append(all, [2]int64{from, w.From})
		}
		from = max(from, w.To+int64(s.Policy.Session+4*time.Second))
	}
	if to-from > int64(least) {
		all = append(all, [2]int64{from, to})
	}
	return all
}

// outlasting returns the times in which a service's members ran suspects that outlast their
// timeouts, in order. Nothing else of such a process runs meanwhile, if they run one by one.
func (ev *evidence) outlasting(s *served) (all [][2]int64) {
	var runs [][2]int64
	for _, name := range ev.membersOf(s.Group) {
		is := ev.journals[name]
		for _, r := range is.Runs {
			if until := ev.until(r); until-r.Start >= int64(s.Policy.HandlerTimeout) && is.Suspected(r) {
				runs = append(runs, [2]int64{r.Start, until})
			}
		}
	}
	slices.SortFunc(runs, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	for _, r := range runs {
		if n := len(all); n > 0 && r[0] <= all[n-1][1] {
			all[n-1][1] = max(all[n-1][1], r[1])
		} else {
			all = append(all, r)
		}
	}
	return all
}
