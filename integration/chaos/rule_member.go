package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// metricsRule: what a member's metrics say is what its journal says.
func metricsRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.metrics)) {
		got := ev.metrics[name]
		counted := map[verdict]int64{}
		calls := int64(0)
		for _, s := range ev.services {
			for _, r := range s.records {
				for _, x := range r.runs {
					if x.member == name && x.end != 0 {
						counted[x.verdict]++
						calls++
					}
				}
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
				f.broken = append(f.broken, Violation{
					Rule: f.rule, Record: -1, Topic: name, Partition: -1, Offset: -1,
					Text: fmt.Sprintf("%s: the metrics say %d, the journal %d", what, metric, journal),
				})
			}
		}
		// A run that its lane's loss cut off is no attempt. The loss may also come just after the
		// handler failed.
		if cut := counted[verdictDrained]; sum > calls-cut || sum < calls-2*cut {
			compare("calls of the handler", sum, calls-cut)
		}
		compare("handled", got[duration+" handled"], counted[verdictPassed])
		compare("discarded", got[duration+" discarded"], counted[verdictDiscard])
	}
}

// diedRule: a member ends by itself only if a fault of the brokers took a permission away that Run
// needs at its start, or if a script kills it.
func diedRule(ev *evidence, f *findings) {
	for _, m := range ev.died {
		rights := slices.ContainsFunc(ev.windows, func(w window) bool { return w.kind == "rights" && w.from <= m.ended && w.to >= m.began })
		switch {
		case rights:
			f.counted["ended without a permission"]++
		case ev.poisonIn(m) != nil:
			f.counted["killed by a record"]++
		default:
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: -1, Topic: m.job.Name, Partition: -1, Offset: -1,
				Text: fmt.Sprintf("it ended by itself: %v; see %s", m.proc.err, m.job.log()),
			})
		}
	}
}

// endTime is how long Run may take beyond DrainTimeout, and the process a little more.
const endTime = 12 * time.Second

// endedRule: a member that is asked to end does so within DrainTimeout and endTime. While brokers
// fail, it may take longer.
func endedRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		took := time.Duration(m.ended - m.termed)
		switch {
		case m.termed == 0 || took <= m.job.Service.Policy.DrainTimeout+endTime:
		case ev.infra(m.termed-int64(session), m.ended):
			f.counted["ended late"]++
		default:
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: -1, Topic: name, Partition: -1, Offset: -1,
				Text: fmt.Sprintf("it took %v to end; see %s", took, m.job.log()),
			})
		}
	}
}
