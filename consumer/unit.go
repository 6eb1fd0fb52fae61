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
	odd     *oddUnit      // nil of most units

	ran       int         // number of recs that ran; the others go back
	handled   int64       // the item's offset + 1, once its handler succeeded
	first     attempts    // the first attempt of each record
	current   running     // for the watchdog and the drain
	cancelled atomic.Bool // the drain time is over
}

// oddUnit has what few units have.
type oddUnit struct {
	follows *item // of a probed follower, the record that has the key
	// Under HoldKeys:
	again *heldRecord // the record is a head
	dead  *keyEnd     // it does not run: it is dead-lettered behind that
	end   *keyEnd     // of the record that ran last, if it failed
}

// parts returns what few units have.
func (u *unit) parts() oddUnit {
	if u.odd == nil {
		return oddUnit{}
	}
	return *u.odd
}

// overdue returns the attempt that runs past its timeout despite its cancellation, nil if none
// does.
func (u *unit) overdue(now time.Time) *attempt {
	if a := u.current.attempt(); a != nil {
		if at, ok := a.deadline(); ok && now.Sub(at) > stuckAfter {
			return a
		}
	}
	return nil
}

// setSpan sets the offsets of the unit's records.
func (u *unit) setSpan(first, last int64) {
	u.span = offsets.Span{First: first, Last: last}
	u.suspect, u.condemned = u.feed.window.Suspects().Has(first), u.feed.condemned(first)
}
