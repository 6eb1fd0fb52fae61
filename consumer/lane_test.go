package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// docs/operations.md says how to skip a record that a lane halts on. An operator has only the
// health. So it names the topic in which the record is: a retry topic, if the record failed there.
func TestLane_HaltedOnATierGoesOnBehindItsOffset(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := consumer.Config{
			Group: "billing", Topics: []string{"orders"},
			Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}, OnExhausted: consumer.Stop, Jitter: -1},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "never" || consumer.DeliveryOf(ctx, r).Attempt == 1 {
					return classify.As(classify.Retryable(errBusy), "busy")
				}
				return nil
			},
		}
		halted := k.Run(cfg)
		k.Handled(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("later")})[0], 1)
		r := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("never")}, &kgo.Record{Topic: "orders", Value: []byte("later")})
		never, behind := r[0], r[1]
		k.Parked(never, 5*time.Second, "busy")
		k.Parked(behind, 5*time.Second, "busy")
		time.Sleep(10 * time.Second)
		const where = "halted on offset 1 of orders.retry.5s: busy"
		if lane := halted.Health().Lanes[0]; lane.State != consumer.StateStopped || !strings.HasPrefix(lane.Why, where) {
			t.Fatalf("the lane is %s: %q, want %q", lane.State, lane.Why, where)
		}
		stop(t, halted)

		setCommitted(t, k, "orders.retry.5s", 2)
		after := k.Run(cfg)
		k.Handled(behind, 1)
		if lane := after.Health().Lanes[0]; lane.State != consumer.StateRunning {
			t.Errorf("the lane is %s: %q", lane.State, lane.Why)
		}
	})
}
