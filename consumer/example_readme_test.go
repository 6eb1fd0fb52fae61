package consumer_test

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// serve is the program in the README, so that the compiler reads it.
func serve(ctx context.Context) error {
	c, err := consumer.New(consumer.Config{
		Group:  "billing",
		Topics: []string{"orders"},
		Kafka:  []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			err := charge(ctx, r.Value)
			if errors.Is(err, ErrBusy) {
				return classify.As(classify.Retryable(err), "payment.busy")
			}
			return err // unknown: terminal, straight to orders.dlq
		},
	})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// ErrBusy is what the README's program takes for granted, and charge.
var ErrBusy = errors.New("busy")

func charge(context.Context, []byte) error { return nil }

var _ = serve
