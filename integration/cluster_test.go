package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration"
)

// The tests of durability rely on a cluster of three. Writes continue with one broker dead. A topic
// that requires more replicas than are left refuses writes. Both recover once the broker is back.
func TestClusterLosesOneBrokerAndGetsItBack(t *testing.T) {
	t.Parallel()
	ownBrokers(t)
	kafka := integration.StartKafka(t, integration.WithBrokers(3))
	// By default a client retries a record without end while a frozen broker withholds its outcome,
	// since a second write could duplicate it. Here a duplicate does no harm.
	mortal := []kgo.Opt{kgo.AllowIdempotentProduceCancellation(), kgo.MetadataMinAge(100 * time.Millisecond)}
	cl := client(t, kafka, mortal...)
	impatient := client(t, kafka, append(mortal, kgo.RecordRetries(1))...)
	adm := kadm.NewClient(cl)
	minISR := func(n string) map[string]*string { return map[string]*string{"min.insync.replicas": &n} }
	for topic, config := range map[string]map[string]*string{"two": minISR("2"), "three": minISR("3")} {
		if _, err := adm.CreateTopic(t.Context(), 3, 3, config, topic); err != nil {
			t.Fatal(err)
		}
	}
	write := func(topic string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return cl.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr()
	}
	for _, topic := range []string{"two", "three"} {
		if err := write(topic, time.Minute); err != nil {
			t.Fatalf("all brokers up: %s: %v", topic, err)
		}
	}

	for _, fault := range []struct {
		name        string
		begin, over func(testing.TB, int)
	}{
		{"killed", kafka.Kill, kafka.Restart},
		{"paused", kafka.Pause, kafka.Unpause},
	} {
		fault.begin(t, 3)
		if err := write("two", time.Minute); err != nil {
			t.Errorf("broker 3 %s: two in-sync replicas are enough for topic two: %v", fault.name, err)
		}
		// The other brokers remove the missing one from the in-sync set first, so the test writes
		// until they refuse.
		err := refusal(t, impatient, "three")
		if !errors.Is(err, kerr.NotEnoughReplicas) && !errors.Is(err, kerr.NotEnoughReplicasAfterAppend) {
			t.Errorf("broker 3 %s: topic three wants three in-sync replicas, yet got %v", fault.name, err)
		}
		fault.over(t, 3)
		if err := write("three", time.Minute); err != nil {
			t.Errorf("broker 3 no longer %s: %v", fault.name, err)
		}
	}
}

// refusal writes to a topic until a broker refuses a record, and returns the reason, or the last
// error when the time is over.
func refusal(t *testing.T, cl *kgo.Client, topic string) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		err = cl.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr()
		if errors.Is(err, kerr.NotEnoughReplicas) || errors.Is(err, kerr.NotEnoughReplicasAfterAppend) {
			break
		}
	}
	return err
}
