package consumer

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// unit is the work that a worker takes from a lane at a time: successive records of one partition,
// or a single record.
type unit struct {
	feed *feed
	tier *tierFeed     // of the feed; nil for a source's
	recs []*kgo.Record // from the source, in order
	item *item         // instead of recs: a single record
	key  keyHash       // under OrderKey, the key that the unit occupies
	// The offsets of its records lie in span, whatever the handler makes of the records.
	span offsets.Span
	// the record may have killed a process
	suspect bool
	// the record killed a process when it ran alone: it does not run again
	condemned *crashError

	// What the topic's guard calls the run, if the unit is one for it: a single record.
	run     guard.Run
	outcome guard.Outcome // of that
	failure failedRun     // the last one
	place   int           // as a probe, how many that failed as probes are in front of it
	stays   bool          // the record that ran last stays where it was
	follows *item         // of a follower, the record that has the key

	ran       int                     // number of recs that ran; the others go back
	handled   int64                   // the item's offset + 1, once its handler succeeded
	current   atomic.Pointer[attempt] // the running attempt, for the watchdog and the drain
	cancelled atomic.Bool             // the drain time is over
}

// overdue returns the attempt that runs past its timeout despite its cancellation, nil if none
// does.
func (u *unit) overdue(now time.Time) *attempt {
	a := u.current.Load()
	if a == nil {
		return nil
	}
	if at, ok := a.deadline(); !ok || now.Sub(at) <= stuckAfter {
		return nil
	}
	return a
}

// setSpan sets the offsets of the unit's records.
func (u *unit) setSpan(first, last int64) {
	u.span = offsets.Span{First: first, Last: last}
	u.suspect, u.condemned = u.feed.window.Suspects().Has(first), u.feed.condemned(first)
}
