package serve

import (
	"context"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/pulse"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// problemOn is [problemOf] of an error about a topic. It names the permissions that are missing.
func (s *Server) problemOn(ctx context.Context, t *watch.Topic, err error) error {
	return problemOf(s.cluster.Denied(ctx, t, err))
}

// attend returns what is asked of the brokers of a topic; a problem as soon as they are silent.
func attend[T any](ctx context.Context, s *Server, t *watch.Topic, ask func(context.Context) (T, error)) (T, error) {
	got, err := pulse.Attend(ctx, s.cluster.Pulse, []string{t.DeadLetterTopic.Topic, t.Ledger}, ask)
	return got, s.problemOn(ctx, t, err)
}

// freeze returns a cursor to the present end of a topic.
func freeze(ctx context.Context, s *Server, t *watch.Topic) (dlq.Cursor, error) {
	return attend(ctx, s, t, func(ctx context.Context) (dlq.Cursor, error) {
		return dlq.Freeze(ctx, t.DeadLetterTopic.Topic, s.cfg.Kafka...)
	})
}

// freshen reads what came to a topic and its ledger.
func freshen(ctx context.Context, s *Server, t *watch.Topic) error {
	_, err := attend(ctx, s, t, func(ctx context.Context) (any, error) { return nil, t.Book.Refresh(ctx) })
	return err
}
