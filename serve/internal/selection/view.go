package selection

import (
	"context"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/payload"
)

// View is how people see letters, and filters: decoded by the schema registry, and without what is
// hidden. The zero value shows them as they are.
type View struct {
	Redact *redact.Rules // nil if nothing is hidden
	Codec  payload.Codec // nil without a registry
}

// Letter returns a letter as it is seen. hidden reports that a part of its value is hidden.
func (v *View) Letter(ctx context.Context, l *dlq.Letter) (seen *dlq.Letter, hidden bool, how payload.Reading) {
	return payload.Shown(ctx, v.Codec, v.Redact, l)
}
