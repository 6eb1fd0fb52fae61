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
	kind startKind
	at   time.Time
}

type startKind uint8

const (
	startEarliest startKind = iota
	startLatest
	startAt
)

// StartEarliest begins at the log's start. The default.
func StartEarliest() Start { return Start{} }

// StartLatest begins at the log's end.
func StartLatest() Start { return Start{kind: startLatest} }

// StartAt begins at the first record whose timestamp is t or later, or at the log's end if there is
// none. The precision is a millisecond.
func StartAt(t time.Time) Start { return Start{kind: startAt, at: t} }

func (s Start) list(ctx context.Context, admin *kadm.Client, topics ...string) (kadm.ListedOffsets, error) {
	switch s.kind {
	case startLatest:
		return admin.ListEndOffsets(ctx, topics...)
	case startAt:
		return admin.ListOffsetsAfterMilli(ctx, s.at.UnixMilli(), topics...)
	}
	return admin.ListStartOffsets(ctx, topics...)
}
