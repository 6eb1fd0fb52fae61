package consumer_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// In place too, RetryAfter is the least wait, not the wait itself. MaxRetryAfter counts there as
// well.
func TestPolicy_RetryAfterIsTheLeastWaitInPlace(t *testing.T) {
	const asked, lanes = 100 * time.Millisecond, 50
	type row struct {
		most        time.Duration // MaxRetryAfter
		least, upTo time.Duration
	}
	each(t, map[string]row{
		"asked for":       {0, asked, asked + 200*time.Millisecond},
		"less is allowed": {20 * time.Millisecond, 20 * time.Millisecond, 220 * time.Millisecond},
		"none is allowed": {-1, 0, 200 * time.Millisecond},
	}, lanes, func(t *testing.T, k *consumertest.Kafka, tt row) {
		var mu sync.Mutex
		failed, waits := map[int32]time.Time{}, []time.Duration{}
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if before, again := failed[r.Partition]; again {
				waits = append(waits, time.Since(before))
				return nil
			}
			failed[r.Partition] = time.Now()
			return classify.RetryAfter(errBusy, asked)
		})
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: 200 * time.Millisecond, Max: 200 * time.Millisecond}
		cfg.Policy.MaxRetryAfter = tt.most
		k.Run(cfg)
		var records []*kgo.Record
		for p := range int32(lanes) {
			records = append(records, &kgo.Record{Topic: "orders", Partition: p, Value: []byte("x")})
		}
		handledOnce(k, k.Produce(records...))
		slices.Sort(waits)
		if len(waits) != lanes || waits[0] < tt.least || waits[lanes-1] > tt.upTo {
			t.Fatalf("%d waits of %v to %v, want %d of %v to %v", len(waits), waits[0], waits[len(waits)-1], lanes, tt.least, tt.upTo)
		}
		if same := len(waits) - len(slices.Compact(slices.Clone(waits))); same > lanes/10 {
			t.Errorf("%d of %d waits are the same as another", same, lanes)
		}
	})
}

// The longest wait and its jitter were more than a Duration can be: the record came at once.
func TestPolicy_LongestRetryAfterIsNeverEarly(t *testing.T) {
	each(t, map[string]consumer.Immediate{"in the tier": {}, "in place": {Attempts: 3, Base: math.MaxInt64, Max: math.MaxInt64}}, 1,
		func(t *testing.T, k *consumertest.Kafka, in consumer.Immediate) {
			var calls atomic.Int64
			cfg := config(func(context.Context, *kgo.Record) error {
				calls.Add(1)
				return classify.RetryAfter(errBusy, math.MaxInt64)
			})
			cfg.Policy.MaxRetryAfter, cfg.Policy.Immediate, cfg.Provision.TierRetention = math.MaxInt64, in, -1
			c := k.Run(cfg)
			k.Produce(many(1)...)
			time.Sleep(10 * time.Minute)
			if n := calls.Load(); n != 1 {
				t.Errorf("the handler asked for a wait of 292 years, and was called %d times in 10 minutes", n)
			}
			isOK(t, c)
		})
}
