package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/examples/service/billing"
)

// wire returns the configuration of a consumer that calls the domain.
func wire(service *billing.Service, kafka ...kgo.Opt) consumer.Config {
	return consumer.Config{
		Group:   "billing",
		Topics:  []string{"orders"},
		Kafka:   kafka,
		Handler: consumer.Decode(consumer.JSON[billing.Order], charge(service)),
		Policy:  consumer.Policy{Tiers: []time.Duration{200 * time.Millisecond, time.Second}},
		Logger:  slog.New(slog.DiscardHandler),
	}
}

// charge is the adapter from records to the domain. The idempotency key is the same for all
// retries.
func charge(service *billing.Service) func(context.Context, *kgo.Record, billing.Order) error {
	return func(ctx context.Context, r *kgo.Record, o billing.Order) error {
		return service.Charge(ctx, consumer.DeliveryOf(ctx, r).IdempotencyKey(), o)
	}
}
