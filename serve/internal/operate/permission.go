package operate

import (
	"context"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/pulse"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// problemOn is [failure.ProblemOf] of an error about a topic. It names the permissions that are
// missing.
func problemOn(ctx context.Context, d *Desk, t *watch.Topic, err error) error {
	return failure.ProblemOf(d.cfg.Cluster.Denied(ctx, t, err))
}

// Attend returns what is asked of the brokers of a topic; a problem as soon as they are silent.
func Attend[T any](ctx context.Context, d *Desk, t *watch.Topic, ask func(context.Context) (T, error)) (T, error) {
	got, err := pulse.Attend(ctx, d.cfg.Cluster.Pulse, []string{t.DeadLetterTopic.Topic, t.Ledger}, ask)
	return got, problemOn(ctx, d, t, err)
}

// freeze returns a cursor to the present end of a topic.
func freeze(ctx context.Context, d *Desk, t *watch.Topic) (dlq.Cursor, error) {
	return Attend(ctx, d, t, func(ctx context.Context) (dlq.Cursor, error) {
		return dlq.Freeze(ctx, t.DeadLetterTopic.Topic, d.cfg.Kafka...)
	})
}

// freshen reads what came to a topic and its ledger.
func freshen(ctx context.Context, d *Desk, t *watch.Topic) error {
	_, err := Attend(ctx, d, t, func(ctx context.Context) (any, error) { return nil, t.Index.Refresh(ctx) })
	return err
}
