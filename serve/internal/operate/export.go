package operate

import (
	"context"
	"iter"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// ExportLetters returns the letters that a filter selects, up to the end that the topic has now, as
// redrive export reads them.
func ExportLetters(ctx context.Context, d *Desk, who *access.Identity, in *request.Export) (iter.Seq2[*dlq.Letter, error], error) {
	t, sel, err := choose(ctx, d, who, in.Topic.Topic, &in.Filter, access.Reader)
	if err != nil {
		return nil, err
	}
	if d.cfg.Redact != nil {
		return nil, failure.NewProblem(api.Redacted, "an export is byte for byte, and this server hides parts of letters: read the letters one by one")
	}
	frozen, err := freeze(ctx, d, t)
	if err != nil {
		return nil, err
	}
	scope := dlq.OpenOnly
	switch {
	case in.All && len(in.State) == 0:
		return dlq.Read(ctx, in.Topic.Topic, sel.Whole(), frozen, d.cfg.Kafka...), nil
	case len(in.State) > 0:
		scope = dlq.WithResolved
	}
	ledger := dlq.NewLedger(in.Topic.Topic, t.Ledger, d.cfg.Kafka...)
	if _, err := Attend(ctx, d, t, func(ctx context.Context) (any, error) { return nil, ledger.Read(ctx, nil, nil) }); err != nil {
		return nil, err
	}
	return ledger.Letters(ctx, sel.Whole(), frozen, scope), nil
}
