package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// startPosition is the offset from which a partition is read, and the offset that counts as
// committed: -1 for none.
type startPosition struct {
	next      kgo.EpochOffset
	committed int64
	said      offsets.Metadata // by a commit
	epoch     int32            // leader epoch up to which its owner had read, -1 if unknown
	end       int64            // of the log, -1 if unknown
}

// beginAt is a start without a committed offset.
func beginAt(offset int64) startPosition {
	return startPosition{next: kgo.EpochOffset{Epoch: -1, Offset: offset}, committed: -1, epoch: -1, end: -1}
}

// has reports whether a table has this offset for a source partition.
func has(table map[string]map[int32]kgo.EpochOffset, topic string, partition int32, offset kgo.EpochOffset) bool {
	o, ok := table[topic][partition]
	return ok && o == offset
}
