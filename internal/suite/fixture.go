package suite

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
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

var errBusy = errors.New("payment gateway is busy")

func ok(context.Context, *kgo.Record) error { return nil }

func busy(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) }

// busyOnce fails each record's first attempt.
var busyOnce = busyFor(1)

// busyFor returns a handler that fails each record's first attempts.
func busyFor(attempts int) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		if consumer.DeliveryOf(ctx, r).Attempt <= attempts {
			return classify.Retryable(errBusy)
		}
		return nil
	}
}

// failingOn returns a handler that fails records with a value.
func failingOn(value string, err error) consumer.Handler {
	return func(_ context.Context, r *kgo.Record) error {
		if string(r.Value) == value {
			return err
		}
		return nil
	}
}

// counting returns a handler that counts its calls.
func counting(runs *atomic.Int32) consumer.Handler {
	return func(context.Context, *kgo.Record) error {
		runs.Add(1)
		return nil
	}
}

// blocking returns a handler of one record: it closes started, and waits for release.
func blocking() (handle consumer.Handler, started, release chan struct{}) {
	started, release = make(chan struct{}), make(chan struct{})
	return func(context.Context, *kgo.Record) error {
		close(started)
		<-release
		return nil
	}, started, release
}

// onAttempt returns a handler that checks the number of each attempt.
func onAttempt(t *testing.T, want int) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		if got := consumer.DeliveryOf(ctx, r).Attempt; got != want {
			t.Errorf("attempt %d, want %d", got, want)
		}
		return nil
	}
}

// pinned returns a record for partition 1.
func (f *fixture) pinned(value string, at time.Time) *kgo.Record {
	return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte(value), Timestamp: at}
}

// copyOf returns the headers of a copy by siding: of a record on partition 1 that is due at once.
func (f *fixture) copyOf(offset int64, attempts int, at time.Time) *headers.Meta {
	return &headers.Meta{
		Original: headers.Position{Topic: f.topic, Partition: 1, Offset: offset, Timestamp: at}, Group: f.group, Attempts: attempts,
		Class: "busy", Message: "busy", FirstFailedAt: at, FailedAt: at, NotBefore: at, Hops: 1,
		History: []headers.Attempt{{Number: 1, Class: "busy", At: at}},
	}
}

// value returns the value of a record's only header with the key.
func value(r *kgo.Record, key string) string {
	all := slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return h.Key != key })
	if len(all) != 1 {
		return fmt.Sprintf("%d times", len(all))
	}
	return string(all[0].Value)
}

// without returns the headers with other keys.
func without(h []kgo.RecordHeader, keys ...string) []kgo.RecordHeader {
	return slices.DeleteFunc(slices.Clone(h), func(h kgo.RecordHeader) bool { return slices.Contains(keys, h.Key) })
}

// sameHeaders compares keys, values and order. A null value may have become an empty one: that
// depends on the broker.
func sameHeaders(a, b []kgo.RecordHeader) bool {
	return slices.EqualFunc(a, b, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

// record returns a record for the fixture's topic.
func (f *fixture) record(value string) *kgo.Record {
	return &kgo.Record{Topic: f.topic, Key: []byte("key"), Value: []byte(value)}
}

// many returns n records over 20 keys and both partitions.
func (f *fixture) many(n int) []*kgo.Record {
	all := make([]*kgo.Record, n)
	for i := range all {
		all[i] = &kgo.Record{Topic: f.topic, Key: fmt.Append(nil, "key-", i%20), Value: fmt.Append(nil, i)}
	}
	return all
}

// keyOf returns a key that maps to the partition.
func (f *fixture) keyOf(partition int32) []byte {
	for i := 0; ; i++ {
		key := fmt.Append(nil, "k", i)
		if int32(kgo.StickyKeyPartitioner(nil).ForTopic(f.topic).Partition(&kgo.Record{Key: key}, 2)) == partition {
			return key
		}
	}
}

// sameBytes compares bytes, and distinguishes nil from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
