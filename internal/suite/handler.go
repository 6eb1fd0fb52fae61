package suite

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

var errBusy = errors.New("payment gateway is busy")

func ok(context.Context, *kgo.Record) error { return nil }

func busy(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) }

// busyOnce fails each record's first attempt.
func busyOnce(ctx context.Context, r *kgo.Record) error {
	if consumer.DeliveryOf(ctx, r).Attempt == 1 {
		return classify.Retryable(errBusy)
	}
	return nil
}
