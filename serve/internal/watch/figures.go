package watch

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// NewFor is how long a class is new after its first letter.
const NewFor = 24 * time.Hour

// lastRunFor is how long the success of a run counts after its end.
const lastRunFor = 24 * time.Hour

// ExpiryHours are the times before retention by which open letters are counted.
var ExpiryHours = []time.Duration{6 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour}

// Figures are what metrics and alerts say of a topic at a moment.
type Figures struct {
	Open, Pending int64
	Oldest        time.Time // when the oldest open letter was written; zero if none is open
	NextExpiry    time.Time // when retention takes that one; zero if it never does
	// by class, of the letters that are or were in the topic
	OpenBy, WrittenBy, RecentBy map[string]int64
	FirstBy                     map[string]time.Time // when the first letter was written
	NewClasses                  []string             // new by Thresholds.NewClass
	Expiring                    []int64              // taken within expiryHours
	ExpiringSoon                int64                // within Thresholds.Retention
	Flow                        letterindex.Flow
	Resolved                    map[dlq.State]int64
	Runs                        map[redrive.State]int64
	LastRun                     redrive.Outcome // see lastRun
	Circuits                    []Circuit
	// Standstills is empty until somebody sets it: [FiguresOf] knows the topic alone.
	Standstills Standstills
}

// Recent returns how many letters came within newWithin.
func (f *Figures) Recent() int64 { return Total(f.RecentBy) }

// Success returns which share of the letters of the last run succeeded, of those that succeeded or
// failed again, and how many failed again; false if that is not known. A letter that waits to be
// retried after the end of its run has failed again. Of an aborted run the share is of all letters
// that it was to send.
func (f *Figures) Success() (share float64, failed int64, known bool) {
	n := &f.LastRun.Counts
	if failed = n.Failed; f.LastRun.State.Finished() {
		failed += n.Retrying
	}
	of := n.Succeeded + failed
	if f.LastRun.State == redrive.Aborted {
		of = n.Selected
	}
	return float64(n.Succeeded) / float64(of), failed, of > 0
}

// Opened reports whether a run opened the circuit of a rule, which has an alert of its own.
func (f *Figures) Opened(run string) bool {
	return slices.ContainsFunc(f.Circuits, func(c Circuit) bool { return c.Name() == "open" && c.State.Run == run })
}

// FiguresOf returns those of a topic now. rules are those of the server.
func FiguresOf(t *Topic, now time.Time, rules []rule.Rule) Figures {
	s, flow, is := t.Index.Summary(), t.Index.Flow(), t.Settings.Thresholds
	f := Figures{
		Open: s.Open, Pending: s.Pending, Oldest: s.Oldest, WrittenBy: s.Written, Resolved: s.ResolvedAs, OpenBy: map[string]int64{},
		RecentBy: t.Arrivals.Recent(now, flow.Written), FirstBy: t.Classes.Firsts(), Flow: flow, Runs: map[redrive.State]int64{}, Circuits: Circuits(t, rules, now),
	}
	for _, g := range s.Groups {
		f.OpenBy[g.Class] += g.Open
	}
	for class, first := range f.FirstBy {
		if now.Sub(first) < is.NewClass {
			f.NewClasses = append(f.NewClasses, class)
		}
	}
	runs := t.Known()
	f.LastRun = lastRun(runs, now)
	f.LastRun.Cause = failure.Outside(t.view.Redact, f.LastRun.Cause) // an operator wrote it
	for i := range runs {
		f.Runs[runs[i].State]++
	}
	if keeps := t.Keeps(); keeps > 0 {
		times := []time.Time{now.Add(is.Retention - keeps)}
		for _, within := range ExpiryHours {
			times = append(times, now.Add(within-keeps))
		}
		counts := t.Index.OpenBefore(times...)
		f.ExpiringSoon, f.Expiring = counts[0], counts[1:]
		if !f.Oldest.IsZero() {
			f.NextExpiry = f.Oldest.Add(keeps)
		}
	}
	return f
}

// LastRun returns the run that began last, of those that ended after they had sent letters, were
// aborted or have outcomes, and did not end long ago; the zero value if there is none. The runs are
// in the order in which they began, whatever their clocks say.
func lastRun(runs []redrive.Outcome, now time.Time) (last redrive.Outcome) {
	for i := range runs {
		r, n := &runs[i], &runs[i].Counts
		old := !r.Ended.IsZero() && now.Sub(r.Ended) >= lastRunFor
		conclusive := n.Succeeded+n.Failed > 0 || r.State == redrive.Aborted || r.State == redrive.Done && n.Sent > 0
		if !old && conclusive {
			last = *r
		}
	}
	return last
}
