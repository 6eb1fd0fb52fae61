package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// committedRule: no commit passes a record that was not finished, nor names one as finished above
// its offset. Of a record that failed, the copy must be in its sibling by then.
func committedRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		passed, highest, named := map[trace.TP]int64{}, map[trace.TP]int64{}, map[*delivered]bool{}
		for _, sample := range ev.samplesOf(s.Group) {
			look := func(at trace.TP, offset int64, how string) {
				d := s.feeds[at].at[offset]
				if d == nil || d.of == nil || finished(d, sample) {
					return
				}
				f.add(d.of, d.record(), d.of.runs, "%s before it was finished, with the offset %d, as seen between %s and %s; %s",
					how, sample.Committed[at], trace.ClockTime(sample.Began), trace.ClockTime(sample.Ended), copiesBy(d.of, sample))
			}
			for at, floor := range sample.Committed {
				feed := s.feeds[at]
				if feed == nil {
					continue
				}
				highest[at] = max(highest[at], floor)
				// What a commit says of the lost end of a log, a later one says of the new end.
				for ; passed[at] < floor && ev.knows(sample, at, passed[at], feed.at[passed[at]]); passed[at]++ {
					look(at, passed[at], "it was committed")
				}
				for _, offset := range trace.FinishedAbove(sample.Metadata[at], floor) {
					if d := feed.at[offset]; d != nil && !named[d] && ev.knows(sample, at, offset, d) {
						named[d] = true
						f.counted["named as finished above a floor"]++
						look(at, offset, "it was named as finished")
					}
				}
			}
		}
		for at, floor := range highest {
			if n := floor - passed[at]; n > 0 {
				f.excluded["passed by a commit of the lost end of a log only"] += int(n)
			}
		}
	}
}

// copiesBy says where a record's copies are, and where the siblings ended in a sample.
func copiesBy(r *record, s *trace.Sample) string {
	var all []string
	for _, c := range slices.Concat(r.copies, r.letters) {
		all = append(all, fmt.Sprintf("the copy of attempt %d is at %s/%d/%d, which ended at %d", c.failed(),
			c.rec.Topic, c.rec.Partition, c.rec.Offset, s.Ends[trace.TP{Topic: c.rec.Topic, Partition: c.rec.Partition}]))
	}
	return cmp.Or(strings.Join(all, ", "), "it has no copy")
}

// finished reports whether a delivery had an end by the time of a sample.
func finished(d *delivered, at *trace.Sample) bool {
	for _, r := range d.runs {
		if r.End != 0 && r.End <= at.Ended && (r.Verdict == trace.VerdictPassed || r.Verdict == trace.VerdictDiscard) {
			return true
		}
	}
	attempt, life, since := 1, 0, time.Time{}
	if d.copy != nil {
		attempt, life, since = d.copy.meta.Attempts+1, d.copy.life(), d.copy.meta.FailedAt
	}
	for _, c := range slices.Concat(d.of.copies, d.of.letters) {
		end, known := at.Ends[trace.TP{Topic: c.rec.Topic, Partition: c.rec.Partition}]
		if c.failed() == attempt && c.life() == life && c.meta.FailedAt.After(since) && (!known || c.rec.Offset < end) {
			return true
		}
	}
	return false
}

// rewound: no committed offset goes back, unless the log lost its end and a journal says that the
// owner read it again for that.
func rewound(ev *evidence, f *findings) {
	last := map[string]map[trace.TP]int64{}
	for _, s := range ev.samples {
		if last[s.Group] == nil {
			last[s.Group] = map[trace.TP]int64{}
		}
		for at, floor := range s.Committed {
			if before := last[s.Group][at]; floor < before {
				if ev.readAgain(at, s.Ended-int64(15*time.Second), s.Ended) {
					f.excluded["rewound, as the log lost its end"]++
					last[s.Group][at] = floor
					continue
				}
				f.report(at.Topic, at.Partition, floor, "%d was committed, and later %d, as seen at %s", before, floor, trace.ClockTime(s.Ended))
			}
			last[s.Group][at] = floor
		}
	}
}
