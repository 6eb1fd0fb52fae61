package consumer

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unit is what a worker takes from a lane at a time: a run of records of one partition that are handled one after the
// other, or a single record.
type unit struct {
	feed *feed
	recs []*kgo.Record // from the source, in order
	item *item         // or a single one
	key  keyHash       // which the unit holds, under OrderKey

	ran       int                     // of recs; the rest goes back
	handled   int64                   // one more than the offset of the item, once its handler succeeded
	current   atomic.Pointer[attempt] // the running attempt, for the watchdog and the drain
	cancelled atomic.Bool             // the drain time is over
}

// item is a record that is handled by itself: any record of a tier, and those of a source unless the order is by
// partition.
type item struct {
	rec    *kgo.Record   // as fetched; of a tier its copy, once a worker has unpacked it
	packed *packedRecord // of a tier, until then
	size   int64         // bytes that it keeps
	next   *item         // behind it in the queue of its key
	hash   keyHash       // of its key, since it is ready
}

// key is the record's.
func (it *item) key() []byte {
	if it.rec == nil {
		return it.packed.key()
	}
	return it.rec.Key
}
