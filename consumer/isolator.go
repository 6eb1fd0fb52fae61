package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/isolate"
)

// isolator gives the lanes to an [isolate.Isolator].
type isolator struct{ *Consumer }

// Lanes implements isolate.Process.
func (c isolator) Lanes() []isolate.Lane {
	lanes := c.lanesNow()
	all := make([]isolate.Lane, len(lanes))
	for i, l := range lanes {
		all[i] = l
	}
	return all
}

// FormerRun implements isolate.Process.
func (c isolator) FormerRun(now time.Time) (running, late bool) { return c.abandonedRun(now) }

// Commit implements isolate.Process.
func (c isolator) Commit(of []isolate.Lane) isolate.Answer {
	lanes := make([]*lane, len(of))
	for i, l := range of {
		lanes[i] = l.(*lane)
	}
	switch err := committer(c).commit(c.ctx, lanes); {
	case isUnanswered(err):
		return isolate.Unanswered
	case isPending(err):
		return isolate.Unsent
	}
	return isolate.Final
}

// Wait implements isolate.Process.
func (c isolator) Wait(d time.Duration) bool { return backoff.Wait(c.stop, d) }
