package consumer

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
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
	// the record killed a process when it ran alone: it does not run again
	condemned *offsets.Alone

	permit  breaker.Permit  // of the topic's breaker, while it is not closed
	retry   bool            // the record failed before
	outcome breaker.Outcome // of the last run
	stays   bool            // the record that ran last stays where it was
	// the record failed as a probe before
	repeated bool

	ran       int                     // number of recs that ran; the others go back
	handled   int64                   // the item's offset + 1, once its handler succeeded
	current   atomic.Pointer[attempt] // the running attempt, for the watchdog and the drain
	cancelled atomic.Bool             // the drain time is over
}

// offsets returns the offsets of the unit's records.
func (u *unit) offsets() (all []int64) {
	if u.item != nil {
		return []int64{u.item.offset()}
	}
	for _, r := range u.recs {
		all = append(all, r.Offset)
	}
	return all
}
