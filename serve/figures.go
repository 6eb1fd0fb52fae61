package serve

import (
	"github.com/sidingkafka/siding/serve/internal/rule"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/book"
)

// newFor is how long a class is new after its first letter.
const newFor = 24 * time.Hour

// lastRunFor is how long the success of a run counts after its end.
const lastRunFor = 24 * time.Hour

// expiryHours are the times before retention by which open letters are counted.
var expiryHours = []time.Duration{6 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour}

// figures are what metrics and alerts say of a topic at a moment.
type figures struct {
	open, pending int64
	oldest        time.Time // when the oldest open letter was written; zero if none is open
	nextExpiry    time.Time // when retention takes that one; zero if it never does
	// by class, of the letters that are or were in the topic
	openBy, writtenBy, recentBy map[string]int64
	firstBy                     map[string]time.Time // when the first letter was written
	newClasses                  []string             // new by Thresholds.NewClass
	expiring                    []int64              // taken within expiryHours
	expiringSoon                int64                // within Thresholds.Retention
	flow                        book.Flow
	resolved                    map[dlq.State]int64
	runs                        map[redrive.State]int64
	lastRun                     redrive.Outcome // see lastRun
	circuits                    []circuit
}

// recent returns how many letters came within newWithin.
func (f *figures) recent() int64 { return total(f.recentBy) }

// success returns which share of the letters of the last run succeeded, of those that succeeded or
// failed again, and how many failed again; false if that is not known. A letter that waits to be
// retried after the end of its run has failed again. Of an aborted run the share is of all letters
// that it was to send.
func (f *figures) success() (share float64, failed int64, known bool) {
	n := &f.lastRun.Counts
	if failed = n.Failed; f.lastRun.State.Finished() {
		failed += n.Retrying
	}
	of := n.Succeeded + failed
	if f.lastRun.State == redrive.Aborted {
		of = n.Selected
	}
	return float64(n.Succeeded) / float64(of), failed, of > 0
}

// opened reports whether a run opened the circuit of a rule: then people hear of that.
func (f *figures) opened(run string) bool {
	return slices.ContainsFunc(f.circuits, func(c circuit) bool { return c.name() == "open" && c.state.Run == run })
}

// figures returns those of a topic now. rules are those of the server.
func (t *topic) figures(now time.Time, rules []rule.Rule) figures {
	s, flow, is := t.book.Summary(), t.book.Flow(), t.config.thresholds()
	f := figures{
		open: s.Open, pending: s.Pending, oldest: s.Oldest, writtenBy: s.Written, resolved: s.ResolvedAs, openBy: map[string]int64{},
		recentBy: t.recent(now, flow.Written), firstBy: t.firsts(), flow: flow, runs: map[redrive.State]int64{}, circuits: t.circuits(rules, now),
	}
	for _, g := range s.Groups {
		f.openBy[g.Class] += g.Open
	}
	for class, first := range f.firstBy {
		if now.Sub(first) < is.NewClass {
			f.newClasses = append(f.newClasses, class)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.lastRun = lastRun(t.runs, now)
	f.lastRun.Cause = outside(t.hidden, f.lastRun.Cause) // an operator wrote it
	for i := range t.runs {
		f.runs[t.runs[i].State]++
	}
	if t.retention > 0 {
		times := []time.Time{now.Add(is.Retention - t.retention)}
		for _, within := range expiryHours {
			times = append(times, now.Add(within-t.retention))
		}
		counts := t.book.OpenBefore(times...)
		f.expiringSoon, f.expiring = counts[0], counts[1:]
		if !f.oldest.IsZero() {
			f.nextExpiry = f.oldest.Add(t.retention)
		}
	}
	return f
}

// lastRun returns the run that began last, of those that ended after they had sent letters, were
// aborted or have outcomes, and did not end long ago; the zero value if there is none. The runs are
// in the order in which they began, whatever their clocks say.
func lastRun(runs []redrive.Outcome, now time.Time) (last redrive.Outcome) {
	for i := range runs {
		r, n := &runs[i], &runs[i].Counts
		old := !r.Ended.IsZero() && now.Sub(r.Ended) >= lastRunFor
		tells := n.Succeeded+n.Failed > 0 || r.State == redrive.Aborted || r.State == redrive.Done && n.Sent > 0
		if !old && tells {
			last = *r
		}
	}
	return last
}
