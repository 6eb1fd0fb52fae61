package serve

import (
	"context"

	"github.com/sidingkafka/siding/serve/api"
)

// DryRunRetention returns what the retention of a topic would do now. It changes nothing. The error
// wraps [ErrNoRetention] if there is none, and [ErrNoLedger] if it would delete without a ledger.
func (s *Server) DryRunRetention(ctx context.Context, topic string) (api.RetentionReport, error) {
	return s.retainer.DryRun(ctx, topic)
}

// ApplyRetention does now what the server does by the clock, and returns what it did. by is who
// asks, for the ledger. It is for the owner of the topic; others do no harm. While a run of the
// topic is unfinished it deletes nothing. The error wraps [ErrNoRetention] if there is no
// retention, [ErrNoLedger] if nothing was deleted because the ledger could not say later who did,
// and [ErrRetentionGoesOn] if ctx ended while this call waited for an earlier one.
func (s *Server) ApplyRetention(ctx context.Context, topic, by string) (api.RetentionReport, error) {
	return s.retainer.Apply(ctx, topic, by)
}
