package chaos

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// metricsRule: what a member's metrics say is what its journal says. A member that ended in order
// has metrics.
func metricsRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		if _, ok := ev.metrics[name]; !ok && m.termed != 0 && !m.killed && m.err == nil {
			f.note(name, -1, -1, "it ended in order, and told no metrics")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ev.metrics)) {
		got := ev.metrics[name]
		counted := map[verdict]int64{}
		calls := int64(0)
		for _, x := range ev.told[name].runs {
			if x.end != 0 {
				counted[x.verdict]++
				calls++
			}
		}
		const duration = "messaging.process.duration"
		sum := int64(0)
		for metric, n := range got {
			if strings.HasPrefix(metric, duration) {
				sum += n
			}
		}
		compare := func(what string, metric, journal int64) {
			if metric != journal {
				f.note(name, -1, -1, "%s: the metrics say %d, the journal %d", what, metric, journal)
			}
		}
		// A run that its lane's loss cut off is no attempt. The loss may also come just after the
		// handler failed.
		if cut := counted[verdictDrained]; sum > calls-cut || sum < calls-2*cut-failedAtLoss(ev.told[name]) {
			compare("calls of the handler", sum, calls-cut)
		}
		compare("handled", got[duration+" handled"], counted[verdictPassed])
		late := calls - counted[verdictDrained] - sum // cut off just after the handler had ended
		if lacks := counted[verdictDiscard] - got[duration+" discarded"]; lacks < 0 || lacks > max(0, late) {
			compare("discarded", got[duration+" discarded"], counted[verdictDiscard])
		}
	}
}

// failedAtLoss returns how many runs failed just before their lane was lost. The log tells of the
// loss a moment later than it happens: 40 ms were seen on a machine without idle time.
func failedAtLoss(t told) (n int64) {
	const later = int64(100 * time.Millisecond)
	for _, x := range t.runs {
		if x.end != 0 && x.verdict != verdictPassed && x.verdict != verdictDrained && slices.ContainsFunc(t.lanes, func(c laneChange) bool {
			return c.lane == x.lane && (c.what == laneEnded || c.what == laneRestarted) && c.at >= x.end && c.at-x.end <= later
		}) {
			n++
		}
	}
	return n
}

// diedRule: a member ends by itself only if a fault of the brokers took a permission away that Run
// needs at its start, or if a script kills it. No member has a data race.
func diedRule(ev *evidence, f *findings) {
	exited(ev, f)
	for _, m := range ev.died {
		switch {
		case lackedRight(ev, m):
			f.excluded["ended without a permission"]++
		case poisonIn(ev, m) != nil:
			f.counted["killed by a record"]++
		default:
			f.note(m.job.Name, -1, -1, "it ended by itself: %v; see %s", m.err, m.job.log())
		}
	}
}

// lackedRight reports whether a permission was taken while the member lived, and not given back
// long before its end. A broker that was frozen then learns of it some seconds after it goes on.
func lackedRight(ev *evidence, m *facts) bool {
	const catchesUp = int64(10 * time.Second)
	return slices.ContainsFunc(ev.windows, func(w window) bool {
		to := w.to
		for _, o := range ev.windows {
			if o.kind == "freeze" && o.from <= w.to && o.to > w.to {
				to = max(to, o.to+catchesUp)
			}
		}
		return w.kind == "rights" && w.from <= m.ended && to >= max(m.began, m.ended-int64(15*time.Second))
	})
}

// exited checks that members that are asked to end do so without an error, and that no log tells of
// a data race or a panic.
func exited(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		if m.termed != 0 && !m.killed && m.err != nil && !lackedRight(ev, m) {
			f.note(name, -1, -1, "it was asked to end, and failed: %v; see %s", m.err, m.job.log())
		}
		if alarm := ev.alarms[name]; alarm != "" {
			f.note(name, -1, -1, "its log says %q; see %s", alarm, m.job.log())
		}
	}
}

// endTime is how long Run may take beyond DrainTimeout, and the process a little more.
const endTime = 12 * time.Second

// endedRule: a member that is asked to end does so within DrainTimeout and endTime, whatever the
// brokers do.
func endedRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		took := time.Duration(m.ended - m.termed)
		if m.termed != 0 && took > m.job.Service.Policy.DrainTimeout+endTime {
			f.note(name, -1, -1, "it took %v to end; see %s", took, m.job.log())
		}
	}
}
