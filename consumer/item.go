package consumer

import (
	"hash/maphash"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/tier"
)

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

// keyHash stands for a key, and 0 for none. Of two keys with the same hash one waits for the other
// as if they were one, which does no harm to their order.
type keyHash uint64

var keySeed = maphash.MakeSeed()
