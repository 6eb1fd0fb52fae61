package serve

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/patient"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// exportLetters returns the letters that a filter selects, up to the end that the topic has now, as
// redrive export reads them.
func (s *Server) exportLetters(ctx context.Context, in *request.Export) (iter.Seq2[*dlq.Letter, error], error) {
	t, sel, err := s.choose(ctx, in.Topic.Topic, &in.Filter, access.Reader)
	if err != nil {
		return nil, err
	}
	if s.redact != nil {
		return nil, problem(api.Redacted, "an export is byte for byte, and this server hides parts of letters: read the letters one by one")
	}
	frozen, err := freeze(ctx, s, t)
	if err != nil {
		return nil, err
	}
	scope := dlq.OpenOnly
	switch {
	case in.All && len(in.State) == 0:
		return dlq.Read(ctx, in.Topic.Topic, sel.Whole(), frozen, s.cfg.Kafka...), nil
	case len(in.State) > 0:
		scope = dlq.WithResolved
	}
	ledger := dlq.NewLedger(in.Topic.Topic, t.Ledger, s.cfg.Kafka...)
	if _, err := attend(ctx, s, t, func(ctx context.Context) (any, error) { return nil, ledger.Read(ctx, nil, nil) }); err != nil {
		return nil, err
	}
	return ledger.Letters(ctx, sel.Whole(), frozen, scope), nil
}

// chunkTime is how long a client may take for a part of an export.
const chunkTime = 30 * time.Second

// streamExport answers with letters as JSON lines.
func (s *Server) streamExport(ctx context.Context, in *request.Export) (*huma.StreamResponse, error) {
	letters, err := s.exportLetters(ctx, in)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/x-ndjson")
		// Names of topics need no quoting.
		hc.SetHeader("Content-Disposition", `attachment; filename="`+in.Topic.Topic+`.jsonl"`)
		_, w := humago.Unwrap(hc)
		out := patient.New(w, chunkTime)
		defer out.End()
		if _, err := dlq.Export(out, letters); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("siding: an export ended early", "topic", in.Topic.Topic, "error", err)
			}
			panic(http.ErrAbortHandler) // the client must not take what it has for all
		}
	}}, nil
}
