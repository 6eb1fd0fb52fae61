package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

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
		is := ev.told[name]
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
