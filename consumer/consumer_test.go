package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// The clients that are made from one of kgo's options write to its value. The race detector fails
// this test.
func TestNew_ConsumersMayShareTheirOptions(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		opts := []kgo.Opt{kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression())}
		for _, group := range []string{"billing", "audit"} {
			k.Begin(consumer.Config{
				Kafka: opts, Group: group, Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Second}},
				Handler: func(context.Context, *kgo.Record) error { return nil },
			})
		}
		k.Handled(k.Produce(&kgo.Record{Topic: "orders"})[0], 2)
	})
}
