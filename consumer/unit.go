package consumer

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unit is what a worker takes from a lane at a time: a run of records of one partition that are
// handled one after the other, or a single record.
type unit struct {
	feed *feed
	tier *tierFeed     // whose feed it is; nil for the source's
	recs []*kgo.Record // from the source, in order
	item *item         // or a single one
	key  keyHash       // which the unit holds, under OrderKey

	ran       int                     // of recs; the rest goes back
	handled   int64                   // the item's offset + 1, once its handler succeeded
	current   atomic.Pointer[attempt] // the running attempt, for the watchdog and the drain
	cancelled atomic.Bool             // the drain time is over
}
