package consumertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

var errBusy = errors.New("the gateway is busy")

// handle is the handler under test: the gateway is busy for the first two attempts of an order, and always for some.
func handle(ctx context.Context, r *kgo.Record) error {
	if string(r.Value) == "never" || consumer.FactsOf(ctx, r).Attempt < 3 {
		return classify.As(classify.Retryable(errBusy), "payment.busy")
	}
	return nil
}

// t is what a test is given.
var t *testing.T

// In virtual time five minutes of delay cost nothing, so a test uses the delays that production has.
func ExampleVirtual() {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: handle})

		records := k.Produce(
			&kgo.Record{Topic: "orders", Key: []byte("customer-1"), Value: []byte("later")},
			&kgo.Record{Topic: "orders", Key: []byte("customer-2"), Value: []byte("never")},
		)
		later, never := records[0], records[1]

		k.Parked(later, 5*time.Second, "payment.busy")
		k.Parked(later, 30*time.Second, "payment.busy")
		k.Handled(later, 1)

		letter := k.DeadLettered(never, headers.ReasonExhausted)
		if letter.Attempts != 4 {
			t.Errorf("dead-lettered after %d attempts, want 4", letter.Attempts)
		}
		k.Conserved() // every record is in exactly one place
	})
}

func TestTheExampleHolds(tt *testing.T) {
	t = tt
	ExampleVirtual()
}
