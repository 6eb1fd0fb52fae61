package consumertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// An assertion that could not come true waited as long as the policy's schedule: hours.
func TestKafka_FailsWhenTheRecordIsFinal(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Hour}},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				switch string(r.Value) {
				case "bad":
					return errors.New("no such SKU")
				case "double":
					return classify.Discard(errors.New("paid before"))
				case "busy":
					if consumer.DeliveryOf(ctx, r).Attempt == 1 {
						return classify.Retryable(errors.New("busy"))
					}
				}
				return nil
			},
		})
		records := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("fine")}, &kgo.Record{Topic: "orders", Value: []byte("bad")},
			&kgo.Record{Topic: "orders", Value: []byte("double")}, &kgo.Record{Topic: "orders", Value: []byte("busy")})
		k.Parked(records[3], time.Hour, "")
		for name, assert := range map[string]func(){
			"twice":               func() { k.Handled(records[0], 2) },
			"fine, dead":          func() { k.DeadLettered(records[0], "") },
			"dead, other reason":  func() { k.DeadLettered(records[1], headers.ReasonDecode) },
			"dead, discarded":     func() { k.Discarded(records[1], "") },
			"discarded, parked":   func() { k.Parked(records[2], time.Hour, "") },
			"discarded, no class": func() { k.Discarded(records[2], "sku") },
		} {
			began := time.Now()
			if said := messageOf(k, assert); !strings.Contains(said, "before all was done with it") || time.Since(began) > time.Minute {
				t.Errorf("%s: after %v: %q", name, time.Since(began), said)
			}
		}
		k.Handled(records[3], 1) // a copy in flight is no end
		k.Conserved()
	})
}

// A record that one group has handled is not final while another group retries it.
func TestKafka_WaitsForTheCopyOfAnotherGroup(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 1)
		for _, group := range []string{"audit", "billing"} {
			k.Run(consumer.Config{
				Group: group, Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Hour}},
				Handler: func(ctx context.Context, r *kgo.Record) error {
					if group == "billing" && consumer.DeliveryOf(ctx, r).Attempt == 1 {
						return classify.Retryable(errors.New("busy"))
					}
					return nil
				},
			})
		}
		k.Handled(k.Produce(&kgo.Record{Topic: "orders"})[0], 2)
	})
}
