package check

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// metricsRule: what a member's metrics say is what its journal says. A member that ended in order
// has metrics.
func metricsRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		if _, ok := ev.metrics[name]; !ok && m.Termed != 0 && !m.Killed && m.Err == nil {
			f.report(name, -1, -1, "it ended in order, and told no metrics")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ev.metrics)) {
		got := ev.metrics[name]
		counted := map[trace.Verdict]int64{}
		calls := int64(0)
		for _, x := range ev.journals[name].Runs {
			if x.End != 0 {
				counted[x.Verdict]++
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
				f.report(name, -1, -1, "%s: the metrics say %d, the journal %d", what, metric, journal)
			}
		}
		// A run that its lane's loss cut off is no attempt. The loss may also come just after the
		// handler failed.
		if cut := counted[trace.VerdictDrained]; sum > calls-cut || sum < calls-2*cut-failedAtLoss(ev.journals[name]) {
			compare("calls of the handler", sum, calls-cut)
		}
		// The duration of a run that was handled has no outcome.
		compare("handled", got[duration], counted[trace.VerdictPassed])
		// Cut off just after the handler had ended.
		late := calls - counted[trace.VerdictDrained] - sum
		if lacks := counted[trace.VerdictDiscard] - got[duration+" discarded"]; lacks < 0 || lacks > max(0, late) {
			compare("discarded", got[duration+" discarded"], counted[trace.VerdictDiscard])
		}
	}
}

// failedAtLoss returns how many runs failed just before their lane was lost. The log has the
// loss a moment later than it happens: 40 ms were seen on a machine without idle time.
func failedAtLoss(t trace.Logged) (n int64) {
	const later = int64(100 * time.Millisecond)
	for _, x := range t.Runs {
		if x.End != 0 && x.Verdict != trace.VerdictPassed && x.Verdict != trace.VerdictDrained && slices.ContainsFunc(t.Lanes, func(c trace.LaneChange) bool {
			return c.Lane == x.Lane && (c.What == trace.LaneEnded || c.What == trace.LaneRestarted) && c.At >= x.End && c.At-x.End <= later
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
			f.report(m.Job.Name, -1, -1, "it ended by itself: %v; see %s", m.Err, m.Job.Log())
		}
	}
}

// lackedRight reports whether a permission was taken while the member lived, and not given back
// long before its end. A broker that was frozen then learns of it some seconds after it goes on.
func lackedRight(ev *evidence, m *trace.Member) bool {
	const catchesUp = int64(10 * time.Second)
	return slices.ContainsFunc(ev.windows, func(w trace.Window) bool {
		to := w.To
		for _, o := range ev.windows {
			if o.Kind == "freeze" && o.From <= w.To && o.To > w.To {
				to = max(to, o.To+catchesUp)
			}
		}
		return w.Kind == "rights" && w.From <= m.Ended && to >= max(m.Began, m.Ended-int64(15*time.Second))
	})
}

// exited checks that members that are asked to end do so without an error, and that no log has
// a data race or a panic.
func exited(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		if m.Termed != 0 && !m.Killed && m.Err != nil && !lackedRight(ev, m) {
			f.report(name, -1, -1, "it was asked to end, and failed: %v; see %s", m.Err, m.Job.Log())
		}
		if alarm := ev.alarms[name]; alarm != "" {
			f.report(name, -1, -1, "its log says %q; see %s", alarm, m.Job.Log())
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
		took := time.Duration(m.Ended - m.Termed)
		if m.Termed != 0 && took > m.Job.Service.Policy.DrainTimeout+endTime {
			f.report(name, -1, -1, "it took %v to end; see %s", took, m.Job.Log())
		}
	}
}

// leaksRule: nothing of keys, values and the user's headers is in what members write: their logs,
// spans and metrics. A look at nothing proves nothing, so something must have been looked at.
func leaksRule(ev *evidence, f *findings) {
	seen := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(ev.leaks)) {
		for kind, n := range ev.leaks[name].Shown {
			seen[kind] += n
		}
		for _, what := range ev.leaks[name].Found {
			f.report(name, -1, -1, "it tells parts of records: %s", what)
		}
	}
	for _, kind := range trace.LeakKinds {
		f.counted["texts looked at: "+kind] = seen[kind]
		if seen[kind] == 0 {
			f.report("", -1, -1, "no %s of any member was looked at", kind)
		}
	}
}
