package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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
