package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// When workers had taken all ready records, the other due records slept until a worker returned.
func TestTierFeed_RunsDueRecordsWhileSlotsAreFree(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var late lateness
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			f := consumer.DeliveryOf(ctx, r)
			late.add(f)
			if f.Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			time.Sleep(20 * time.Second)
			return nil
		})
		cfg.Order, cfg.Concurrency = consumer.OrderNone, 2000
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, Breaker: noBreaker, RetryBudget: noBudget}
		k.Run(cfg)
		handledOnce(k, k.Produce(many(700)...))
		late.check(t, time.Minute)
	})
}

// The ready records of a tier were all of one key, and kept records of other keys from becoming
// ready.
func TestTierFeed_ABusyKeyHoldsUpNoOther(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var other atomic.Int64
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			f := consumer.DeliveryOf(ctx, r)
			if f.Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			if string(r.Key) == "other" {
				other.Store(int64(time.Since(f.NotBefore)))
				return nil
			}
			time.Sleep(time.Second)
			return nil
		})
		cfg.Order = consumer.OrderKey
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, Breaker: noBreaker, RetryBudget: noBudget}
		k.Run(cfg)
		var records []*kgo.Record
		for range 599 {
			records = append(records, &kgo.Record{Topic: "orders", Key: []byte("hot")})
		}
		records = k.Produce(append(records, &kgo.Record{Topic: "orders", Key: []byte("other")})...)
		handledOnce(k, records)
		if late := time.Duration(other.Load()); late > 100*time.Millisecond {
			t.Errorf("another key's record is %v late", late)
		}
	})
}
