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

// trio is a cluster of three, on which the tests of durability rely. Writes continue with one
// broker dead. A topic that requires more replicas than are left refuses writes. Both recover once
// the broker is back.
type trio struct {
	t             *testing.T
	cl, impatient *kgo.Client
}

// newTrio checks that all brokers take records.
func newTrio(t *testing.T, kafka *integration.Kafka) *trio {
	t.Helper()
	// By default a client retries a record without end while a frozen broker withholds its outcome,
	// since a second write could duplicate it. Here a duplicate does no harm.
	mortal := []kgo.Opt{kgo.AllowIdempotentProduceCancellation(), kgo.MetadataMinAge(100 * time.Millisecond), kgo.UnknownTopicRetries(-1)}
	k := &trio{t, client(t, kafka, mortal...), client(t, kafka, append(mortal, kgo.RecordRetries(1))...)}
	adm := kadm.NewClient(k.cl)
	minISR := func(n string) map[string]*string { return map[string]*string{"min.insync.replicas": &n} }
	for topic, config := range map[string]map[string]*string{"two": minISR("2"), "three": minISR("3")} {
		if _, err := adm.CreateTopic(t.Context(), 3, 3, config, topic); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{"two", "three"} {
		if err := k.write(topic); err != nil {
			t.Fatalf("all brokers up: %s: %v", topic, err)
		}
	}
	return k
}

func (k *trio) write(topic string) error {
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	return k.cl.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr()
}

// oneIsAway checks what the two brokers that are left take.
func (k *trio) oneIsAway(why string) {
	k.t.Helper()
	if err := k.write("two"); err != nil {
		k.t.Errorf("broker 3 %s: two in-sync replicas are enough for topic two: %v", why, err)
	}
	// The other brokers remove the missing one from the in-sync set first, so the test writes until
	// they refuse.
	err := refusal(k.t, k.impatient, "three")
	if !errors.Is(err, kerr.NotEnoughReplicas) && !errors.Is(err, kerr.NotEnoughReplicasAfterAppend) {
		k.t.Errorf("broker 3 %s: topic three wants three in-sync replicas, yet got %v", why, err)
	}
}

// allAreBack checks that all brokers take records again.
func (k *trio) allAreBack(why string) {
	k.t.Helper()
	if err := k.write("three"); err != nil {
		k.t.Errorf("broker 3 no longer %s: %v", why, err)
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
