package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// Trap 8: the queue of parked records is unbounded. Here those due farthest away are evicted, and
// are back in time.
func TestTierFeed_BeyondItsBudgetRunsInTime(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		var late lateness
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			f := consumer.DeliveryOf(ctx, r)
			late.add(f)
			if f.Attempt < 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Order = order
		cfg.Policy.Tiers = []time.Duration{time.Minute, 10 * time.Minute}
		cfg.Policy.RetryBudget.Off = true
		cfg.MaxParkedBytes = 512 << 10
		c := k.Run(cfg)
		records := inBatches(k, 20, 100, time.Second)
		eventually(t, "all are parked", func() bool { return waiting(c) == len(records) })
		handledOnce(k, records)
		k.Conserved()
		late.check(t, cfg.Policy.Tiers...)
	})
}

// A lane whose dead letters are refused has a tier full of overdue records. They do not take the
// room of other lanes.
func TestTierFeed_OfABlockedLaneLeavesOthersTheirRoom(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 1)
		var late lateness
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if f := consumer.DeliveryOf(ctx, r); r.Topic == "bills" {
				late.add(f)
				if f.Attempt > 2 {
					return nil
				}
			} else if f.Attempt > 1 && string(r.Key) == "stop" {
				return classify.Terminal(errors.New("no"))
			}
			return classify.Retryable(errBusy)
		})
		cfg.Topics = []string{"orders", "bills"}
		cfg.Policy.Tiers = []time.Duration{10 * time.Second, time.Minute}
		cfg.Policy.RetryBudget.Off = true
		cfg.MaxParkedBytes = 100_000
		again := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true,
			When: func(r kmsg.Request) bool { return r.(*kmsg.FetchRequest).SessionEpoch == -1 },
		})
		c := k.Run(cfg)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Produce(&kgo.Record{Topic: "orders", Key: []byte("stop")})
		for range 20 {
			k.Produce(many(100)...)
		}
		time.Sleep(15 * time.Second) // the lane is blocked, 2,000 records of its tier are overdue
		if h := c.Health().Lanes; h[1].State != consumer.StateBlocked || h[1].Parked < 1000 {
			t.Fatalf("the lane of orders is %+v, want it blocked with its tier full", h[1])
		}
		var bills []*kgo.Record
		for i := range 500 {
			bills = append(bills, &kgo.Record{Topic: "bills", Value: []byte(strings.Repeat("x", 100)), Key: fmt.Append(nil, i)})
		}
		handledOnce(k, k.Produce(bills...))
		late.check(t, cfg.Policy.Tiers...)
		// Each record that was due before all records of its feed needed its own pass over its
		// block.
		if n := again.Hits(); n > 2500 {
			t.Errorf("%d fetches for 2,500 parked records that gave up their bytes", n)
		}
	})
}

// A failed fetch of evicted records is tried again, and no record is lost.
func TestTierFeed_FetchesEvictedRecordsInSpiteOfErrors(t *testing.T) {
	each(t, map[string]*kerr.Error{
		"no leader":      kerr.NotLeaderForPartition,
		"unknown":        kerr.UnknownServerError,
		"out of range":   kerr.OffsetOutOfRange,
		"not authorized": kerr.TopicAuthorizationFailed,
	}, 1, func(t *testing.T, k *consumertest.Kafka, err *kerr.Error) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		cfg.MaxParkedBytes = 10_000
		c := k.Run(cfg)
		records := k.Produce(many(500)...)
		eventually(t, "all are parked", func() bool { return waiting(c) == 500 })
		refused := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.retry.1m", Count: 5, Err: err,
			When: func(r kmsg.Request) bool { return r.(*kmsg.FetchRequest).SessionEpoch == -1 },
		})
		handledOnce(k, records)
		k.Conserved()
		if n := refused.Hits(); n != 5 {
			t.Errorf("%d fetches were refused, want 5", n)
		}
	})
}
