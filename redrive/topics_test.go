package redrive_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
)

// A run is named by its dead-letter topic alone, so the group in that topic's name has to be read
// from it.
func TestTopicsOf_ReadsTheGroupFromTheName(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		s := newService("tax")
		naming := retrytopics.Naming{Retry: "{topic}.retry.{group}.{delay}", DLQ: "{topic}.dlq.{group}", Ledger: "{topic}.ledger.{group}"}
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Naming: naming, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}},
		})
		for _, r := range k.Produce(&kgo.Record{Topic: "orders", Value: []byte("tax:1")}) {
			k.DeadLettered(r, headers.ReasonTerminal)
		}
		s.has()
		r := redriverOf(t, redrive.Config{Kafka: k.Opts(), Naming: naming})
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq.billing"})
		succeeds(t, 1)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		if o, err := r.Status(t.Context(), "orders.dlq.billing", p.ID); err != nil || o.State != redrive.Done {
			t.Errorf("the status is %v, and %+v", err, o)
		}
	})
}
