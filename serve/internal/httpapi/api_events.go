package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/patient"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// eventTime is how long a client may take for an event.
const eventTime = 10 * time.Second

// streamRun answers with the states of a run as server-sent events.
func (h *API) streamRun(ctx context.Context, who *access.Identity, in *request.Events) (*huma.StreamResponse, error) {
	events, more, err := operate.FollowRun(ctx, h.cfg.Desk, who, in)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		if !more { // a browser then asks no more
			hc.SetStatus(http.StatusNoContent)
			return
		}
		hc.SetHeader("Content-Type", "text/event-stream")
		hc.SetHeader("X-Accel-Buffering", "no") // of nginx
		_, w := humago.Unwrap(hc)
		out := patient.New(w, eventTime)
		defer out.End()
		for e := range events {
			text := ": nothing new\n\n"
			if e.ID != "" {
				data, err := json.Marshal(e.Run)
				if err != nil {
					return
				}
				text = fmt.Sprintf("id: %s\nevent: run\ndata: %s\n\n", e.ID, data)
			}
			if out.Send([]byte(text)) != nil {
				return
			}
		}
	}}, nil
}
