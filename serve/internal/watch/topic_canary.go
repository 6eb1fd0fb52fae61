package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// Canary returns the place of the letter that shows whether a fault is over: the oldest open one
// that may be redriven. One that failed as a canary comes back with a redrive more, and is refused
// in the end.
func Canary(ctx context.Context, t *Topic, r *rule.Rule, f *dlq.Filter, kafka []kgo.Opt) (dlq.Range, error) {
	ledger := dlq.NewLedger(t.DeadLetterTopic.Topic, t.Ledger, kafka...)
	any := false
	lanes, err := partitionsOf(ctx, t.Source, kafka)
	if err != nil {
		return dlq.Range{}, err
	}
	for l, err := range ledger.Letters(ctx, *f, dlq.Cursor{}, dlq.OpenOnly) {
		switch {
		case err != nil:
			return dlq.Range{}, err
		case l.Damaged() || l.Meta.Group == "" || l.Meta.Original.Topic != t.Source: // no home
		case lanes >= 0 && int(l.Meta.Original.Partition) >= lanes: // the source shrank
		case l.Meta.Redrive.Count < r.MaxReplays:
			return dlq.At(l.Record.Partition, l.Record.Offset), nil
		default:
			any = true
		}
	}
	if !any {
		return dlq.Range{}, &redrive.RefusedError{Topic: t.DeadLetterTopic.Topic, Reason: redrive.RefusedNothing, Detail: "no open letter fits that can come home"}
	}
	return dlq.Range{}, fmt.Errorf("each letter was redriven %d times: max-replays", r.MaxReplays)
}

// partitionsOf returns how many partitions a topic has; -1 if it cannot be described.
func partitionsOf(ctx context.Context, topic string, kafka []kgo.Opt) (int, error) {
	adm, err := client.NewAdmin(kafka...)
	if err != nil {
		return -1, err
	}
	defer adm.Close()
	if found, err := adm.ListTopics(ctx, topic); err == nil && (found[topic].Err == nil || errors.Is(found[topic].Err, kerr.UnknownTopicOrPartition)) {
		return len(found[topic].Partitions), nil
	}
	return -1, nil // the plan names it
}
