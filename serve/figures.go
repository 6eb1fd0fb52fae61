package serve

import (
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// newFor is how long a class is new after its first letter.
const newFor = 24 * time.Hour

// newWithin is the time in which the letters of Thresholds.New come.
const newWithin = 5 * time.Minute

// expiryHours are the times before retention by which open letters are counted.
var expiryHours = []time.Duration{6 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour}

// figures are what metrics and alerts say of a topic at a moment.
type figures struct {
	open, pending int64
	oldest        time.Time // when the oldest open letter was written; zero if none is open
	recent        int64     // letters that came within newWithin
	// by class, of the letters that are or were in the topic
	openBy, writtenBy map[string]int64
	newClasses        []string // whose first letter came within newFor
	expiring          []int64  // open letters that retention takes within expiryHours
	expiringSoon      int64    // within Thresholds.Retention
	outcomes          map[dlq.State]int64
	runs              map[redrive.State]int64
}

// figures returns those of a topic now.
func (t *topic) figures(now time.Time) figures {
	s := t.book.Summary()
	f := figures{open: s.Open, pending: s.Pending, oldest: s.Oldest, recent: t.book.Entered(now.Add(-newWithin)), openBy: map[string]int64{}, runs: map[redrive.State]int64{}}
	for _, g := range s.Groups {
		f.openBy[g.Class] += g.Open
	}
	f.writtenBy, f.outcomes = s.Written, s.ResolvedAs
	for class, first := range s.FirstWritten {
		if now.Sub(first) < newFor {
			f.newClasses = append(f.newClasses, class)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.runs {
		f.runs[t.runs[i].State]++
	}
	if t.retention > 0 {
		f.expiringSoon = t.book.OpenBefore(now.Add(t.config.thresholds().Retention - t.retention))
		for _, within := range expiryHours {
			f.expiring = append(f.expiring, t.book.OpenBefore(now.Add(within-t.retention)))
		}
	}
	return f
}
