package consumer

import (
	"hash/maphash"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/tier"
)

// item is a record that runs alone. Any record of a tier does, and a source's record unless the
// order is by partition.
type item struct {
	rec    *kgo.Record // a source's record, as fetched
	size   int64       // of rec
	parked *tier.Item  // a tier's record
	hash   keyHash     // of its key, once enqueued
	fresh  bool        // redriven, and did not run since
	again  bool        // a head that is due, see Config.HoldKeys
	freed  bool        // it waited behind a head that has ended
	dead   bool        // it is dead-lettered behind a head
	probed int64       // the round in which it failed as a probe
}

// offset returns where the record is in its topic.
func (it *item) offset() int64 {
	if it.parked != nil {
		return it.parked.Offset()
	}
	return it.rec.Offset
}

// isRetry reports whether the record failed before, so that it waits for the retry budget.
func (it *item) isRetry() bool { return it.parked != nil && !it.fresh }

// isUrgent reports whether the record waited as a head, or behind one: it goes before others.
func (it *item) isUrgent() bool { return it.again || it.freed || it.dead }

// key returns the record's key.
func (it *item) key() []byte {
	if it.parked != nil {
		return it.parked.Key()
	}
	return it.rec.Key
}

// hashOf returns the hash of a key that is not null.
func hashOf(key []byte) keyHash { return keyHash(max(maphash.Bytes(keySeed, key), 1)) }

// keyHash stands for a key; 0 means no key. Two keys with the same hash are treated as one, which
// keeps the order of both.
type keyHash uint64

var keySeed = maphash.MakeSeed()
