package consumertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

var errBusy = errors.New("the gateway is busy")

// handle is the handler under test: the gateway is busy for the first two attempts of an order, and
// always for some orders.
func handle(ctx context.Context, r *kgo.Record) error {
	if string(r.Value) == "never" || consumer.DeliveryOf(ctx, r).Attempt < 3 {
		return classify.As(classify.Retryable(errBusy), "payment.busy")
	}
	return nil
}

// t stands for the parameter of a test.
var t *testing.T

// In virtual time five minutes of delay cost nothing, so a test uses the delays of production.
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

// config stands for the service's own configuration.
func config() consumer.Config {
	return consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: handle}
}

// The letters of an incident are a test of the fix. redrive export --sample 3 writes them.
func ExampleKafka_Import() {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters := k.Import("testdata/ops-4711.jsonl") // as the group first saw them
		k.Run(config())                                // the service's own configuration
		k.Fixed(letters)                               // or the failing ones by class
	})
}

// Start is for handlers that do not work in virtual time, such as one with a real connection to a
// database.
func ExampleStart() {
	k := consumertest.Start(t)
	k.CreateTopic("orders", 3)
	k.Run(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Handler: handle,
		Policy: consumer.Policy{Tiers: []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}},
	})
	later := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("later")})[0]
	k.Parked(later, 100*time.Millisecond, "payment.busy")
	k.Handled(later, 1)
}

// On makes the same assertions on any broker. The variable brokers has its addresses, for example
// those of integration.StartKafka.
func ExampleOn() {
	k := consumertest.On(t, kgo.SeedBrokers(brokers...))
	k.CreateTopic("orders", 3)
	k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: handle})
	later := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("later")})[0]
	k.Parked(later, 5*time.Second, "payment.busy")
}

// A test may stop a consumer and start another: parked records belong to the group, not to the
// process.
func ExampleConsumer_Stop() {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		cfg := consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: handle}
		first := k.Run(cfg)
		later := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("later")})[0]
		k.Parked(later, 5*time.Second, "payment.busy")
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		k.Run(cfg)
		k.Handled(later, 1)
	})
}

// Begin starts a consumer that will not become ready, and Wait awaits its end: here a topic is
// missing.
func ExampleKafka_Begin() {
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		c := k.Begin(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: handle})
		if err := c.Wait(); err == nil {
			t.Error("it consumes a topic that does not exist")
		}
	})
}

// brokers are the addresses of a cluster.
var brokers []string

func TestKafka_ExamplesHold(tt *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		tt.Fatal(err)
	}
	defer cluster.Close()
	brokers = cluster.ListenAddrs()
	for name, example := range map[string]func(){
		"Virtual": ExampleVirtual, "Start": ExampleStart, "On": ExampleOn, "Stop": ExampleConsumer_Stop, "Begin": ExampleKafka_Begin, "Import": ExampleKafka_Import,
	} {
		tt.Run(name, func(tt *testing.T) {
			t = tt
			example()
		})
	}
}
