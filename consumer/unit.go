package consumer

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/tier"
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

// item is a record that is handled by itself: any record of a tier, and those of a source unless
// the order is by partition.
type item struct {
	rec    *kgo.Record // of a source, as fetched
	size   int64       // of that
	parked *tier.Item  // of a tier
	next   *item       // behind it in the queue of its key
	hash   keyHash     // of its key, since it is ready
}

// key is the record's.
func (it *item) key() []byte {
	if it.parked != nil {
		return it.parked.Key()
	}
	return it.rec.Key
}
