package serve

import (
	"context"
	"errors"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/pulse"
)

// denied adds to an error what the server's own user lacks on a topic, if it is a broker's denial.
// A broker says of which topic it denied something, and not what: so it is asked for all that the
// server does there. Another error stays as it is, and so does a denial that cannot be explained.
func (s *Server) denied(ctx context.Context, t *topic, err error) error {
	if _, named := errors.AsType[*redrive.DeniedError](err); named || !failure.IsDenial(err) {
		return err
	}
	name := t.DeadLetterTopic.Topic
	needs := map[string][]string{name: {"READ"}, t.Ledger: {"READ", "WRITE"}}
	if t.config.Retention != nil {
		needs[name] = append(needs[name], "DELETE")
	}
	if lacks := failure.Lacks(ctx, needs, s.cfg.Kafka...); len(lacks) > 0 {
		return errors.Join(append(lacks, err)...)
	}
	return err
}

// problemOn is [problemOf] of an error about a topic. It names the permissions that are missing.
func (s *Server) problemOn(ctx context.Context, t *topic, err error) error {
	return problemOf(s.denied(ctx, t, err))
}

// attend returns what is asked of the brokers of a topic; a problem as soon as they are silent.
func attend[T any](ctx context.Context, s *Server, t *topic, ask func(context.Context) (T, error)) (T, error) {
	got, err := pulse.Attend(ctx, s.pulse, []string{t.DeadLetterTopic.Topic, t.Ledger}, ask)
	return got, s.problemOn(ctx, t, err)
}

// freeze returns a cursor to the present end of a topic.
func freeze(ctx context.Context, s *Server, t *topic) (dlq.Cursor, error) {
	return attend(ctx, s, t, func(ctx context.Context) (dlq.Cursor, error) {
		return dlq.Freeze(ctx, t.DeadLetterTopic.Topic, s.cfg.Kafka...)
	})
}

// freshen reads what came to a topic and its ledger.
func freshen(ctx context.Context, s *Server, t *topic) error {
	_, err := attend(ctx, s, t, func(ctx context.Context) (any, error) { return nil, t.book.Refresh(ctx) })
	return err
}
