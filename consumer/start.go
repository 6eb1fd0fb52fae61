package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Start says where a source partition begins on which the group has no committed offset. siding
// commits that offset before the partition's first record runs. Retry topics always begin at their
// start. So do partitions that are added to a source which the group already consumes: no record is
// skipped that was written before a member was assigned them.
type Start struct {
	// nil means StartEarliest
	list func(*kadm.Client, context.Context, ...string) (kadm.ListedOffsets, error)
	// [New] refuses a time before 1970, which brokers take for something else
	at *time.Time
}

// StartEarliest begins at the log's start. The default.
func StartEarliest() Start { return Start{} }

// StartLatest begins at the log's end.
func StartLatest() Start { return Start{list: (*kadm.Client).ListEndOffsets} }

// StartAt begins at the first record whose timestamp is t or later, or at the log's end if there is
// none. The precision is a millisecond. [New] refuses a time before 1970, as the zero time is.
func StartAt(t time.Time) Start {
	return Start{at: &t, list: func(admin *kadm.Client, ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
		return admin.ListOffsetsAfterMilli(ctx, t.UnixMilli(), topics...)
	}}
}

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
