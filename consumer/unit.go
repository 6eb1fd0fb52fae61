package consumer

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unit is the work that a worker takes from a lane at a time: successive records of one partition,
// or a single record.
type unit struct {
	feed *feed
	tier *tierFeed     // of the feed; nil for a source's
	recs []*kgo.Record // from the source, in order
	item *item         // instead of recs: a single record
	key  keyHash       // under OrderKey, the key that the unit occupies

	ran       int                     // number of recs that ran; the others go back
	handled   int64                   // the item's offset + 1, once its handler succeeded
	current   atomic.Pointer[attempt] // the running attempt, for the watchdog and the drain
	cancelled atomic.Bool             // the drain time is over
}
