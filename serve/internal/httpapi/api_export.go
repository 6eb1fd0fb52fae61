package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/patient"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// chunkTime is how long a client may take for a part of an export.
const chunkTime = 30 * time.Second

// streamExport answers with letters as JSON lines.
func (h *API) streamExport(ctx context.Context, who *access.Identity, in *request.Export) (*huma.StreamResponse, error) {
	letters, err := operate.ExportLetters(ctx, h.cfg.Desk, who, in)
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
				h.cfg.Log.Warn("siding: an export ended early", "topic", in.Topic.Topic, "error", err)
			}
			panic(http.ErrAbortHandler) // the client must not take what it has for all
		}
	}}, nil
}
