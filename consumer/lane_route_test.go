package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// docs/adopting.md says how to stop using siding: set MaxAttempts to 1 and keep Tiers. Then no more
// records are parked, parked records still run when they are due, and the retry topics run empty.
func TestLane_OneAttemptRunsTheTiersEmpty(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := consumer.Config{
			Group: "billing", Topics: []string{"orders"},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "mended" && consumer.DeliveryOf(ctx, r).Attempt == 2 {
					return nil
				}
				return classify.Retryable(errBusy)
			},
		}
		before := k.Run(cfg)
		parked := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("mended")}, &kgo.Record{Topic: "orders", Value: []byte("broken")})
		for _, r := range parked {
			k.Parked(r, 5*time.Second, "")
		}
		stop(t, before)

		cfg.Policy.MaxAttempts = 1
		after := k.Run(cfg)
		late := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("broken")})[0]
		if letter := k.DeadLettered(late, headers.ReasonExhausted); letter.Attempts != 1 {
			t.Errorf("what came later was tried %d times, want once", letter.Attempts)
		}
		k.Handled(parked[0], 1)
		if letter := k.DeadLettered(parked[1], headers.ReasonExhausted); letter.Attempts != 2 {
			t.Errorf("what was parked was tried %d times, want twice", letter.Attempts)
		}
		stop(t, after)
		k.Conserved()

		lag, err := kadm.NewClient(client(t, k)).Lag(t.Context(), "billing")
		if err != nil || lag.Error() != nil {
			t.Fatal(err, lag.Error())
		}
		for topic, n := range lag["billing"].Lag.TotalByTopic() {
			if n.Lag != 0 {
				t.Errorf("%s has a lag of %d", topic, n.Lag)
			}
		}
	})
}
