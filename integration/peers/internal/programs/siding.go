package programs

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/peers/internal/work"
	"github.com/sidingkafka/siding/retrytopics"
)

// siding is siding's consumer with its defaults. A job without waits has no retry topics, and its
// failures are terminal; a job with keys runs in their order.
func siding(ctx context.Context, j work.Job, handle work.Handler) error {
	verdict, tiers := classify.Retryable, j.Waits
	if len(tiers) == 0 {
		verdict, tiers = classify.Terminal, []time.Duration{}
	}
	cfg := consumer.Config{
		Group:  j.Group,
		Topics: []string{j.Topic},
		Kafka:  []kgo.Opt{kgo.SeedBrokers(j.Seeds...), kgo.ProducerBatchCompression(kgo.NoCompression())},
		Naming: retrytopics.Naming{
			Retry:  "{topic}.retry.{group}.{delay}",
			DLQ:    "{topic}.dlq.{group}",
			Ledger: "{topic}.dlq.ledger.{group}",
		},
		Policy:         consumer.Policy{Tiers: tiers},
		CommitInterval: commitInterval,
		Handler: func(ctx context.Context, r *kgo.Record) error {
			if err := handle(ctx, r.Value); err != nil {
				return verdict(err)
			}
			return nil
		},
	}
	if j.Keys > 0 {
		cfg.Order, cfg.Concurrency = consumer.OrderKey, j.Slots
	}
	c, err := consumer.New(cfg)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}
