package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Start says where a source partition begins for a group that has no committed offset on it. It is
// settled, and committed, before the partition's first record runs. Retry topics always begin at
// their start, and so do partitions that are added to a source which the group consumes already:
// what was written to them before a member had them is not skipped.
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

// StartAt begins at the first record whose timestamp is t or later, at the end if there is none.
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
