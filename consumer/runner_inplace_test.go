package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// The context of a run in place that succeeds ends as that of any other: when the next record runs,
// and not only if it is the unit's last. What the handler registered with it leaked.
func TestRunner_ContextOfARunInPlaceEnds(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var kept []context.Context
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			for _, before := range kept {
				if before.Err() == nil {
					t.Errorf("record %d runs, and the context of a run before it has not ended", r.Offset)
				}
			}
			ctx.Done()
			if kept = append(kept, ctx); len(kept) == 1 {
				return classify.RetryAfter(errBusy, time.Millisecond)
			}
			return nil
		})
		cfg.Concurrency, cfg.Policy.HandlerTimeout = 1, -1
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: time.Millisecond, Max: time.Millisecond}
		records := k.Produce(many(3)...)
		k.Run(cfg)
		handledOnce(k, records)
	})
}
