package suite

// The topic and group of one test, and its usual configuration.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// The tiers of most tests: short enough for a real clock, and different enough to distinguish.
const (
	tier1 = 300 * time.Millisecond
	tier2 = 900 * time.Millisecond
)

// fixture is a test's own topic and group.
type fixture struct {
	*consumertest.Kafka
	topic, group string
	handled      sync.Map // by record: whether a handler of config has succeeded
}

func newFixture(t *testing.T, k *consumertest.Kafka) *fixture {
	t.Helper()
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	suffix := hex.EncodeToString(b[:])
	f := &fixture{Kafka: k, topic: "orders-" + suffix, group: "billing-" + suffix}
	f.CreateTopic(f.topic, 2)
	return f
}

// config returns a configuration with the short tiers. It has no breaker: most of the handlers fail
// most records on purpose.
func (f *fixture) config(h consumer.Handler) consumer.Config {
	return consumer.Config{
		Group: f.group, Topics: []string{f.topic}, Handler: f.watch(h),
		Policy:         consumer.Policy{Tiers: []time.Duration{tier1, tier2}, Breaker: consumer.Breaker{Off: true}, RetryBudget: consumer.RetryBudget{Off: true}},
		CommitInterval: 100 * time.Millisecond,
	}
}

func (f *fixture) watch(h consumer.Handler) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		err := h(ctx, r)
		if err == nil {
			f.handled.Store([2]int64{int64(r.Partition), r.Offset}, true)
		}
		return err
	}
}

// unhandled fails the test if a handler of config has succeeded with the record by now.
func (f *fixture) unhandled(t *testing.T, r *kgo.Record) {
	t.Helper()
	if _, ok := f.handled.Load([2]int64{int64(r.Partition), r.Offset}); ok {
		t.Errorf("record %d of partition %d was handled", r.Offset, r.Partition)
	}
}

// tierTopic returns the retry topic of a delay.
func (f *fixture) tierTopic(delay time.Duration) string {
	return f.topic + ".retry." + retrytopics.FormatDelay(delay)
}
