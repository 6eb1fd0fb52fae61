package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// Trap 5: a fetch that was paused for lack of room is never resumed; members heartbeat, and nothing
// is consumed.
func TestTierFeed_PausedForLackOfRoomGoesOn(t *testing.T) {
	each(t, map[string]func(*consumer.Config){
		"by records":          func(c *consumer.Config) { c.MaxInFlight = 10 },
		"by bytes":            func(c *consumer.Config) { c.MaxInFlightBytes = 2000 },
		"by key, by records":  func(c *consumer.Config) { c.Order, c.MaxInFlight = consumer.OrderKey, 10 },
		"by key, by bytes":    func(c *consumer.Config) { c.Order, c.MaxInFlightBytes = consumer.OrderKey, 2000 },
		"no order, by record": func(c *consumer.Config) { c.Order, c.MaxInFlight = consumer.OrderNone, 10 },
	}, 2, func(t *testing.T, k *consumertest.Kafka, bound func(*consumer.Config)) {
		release := make(chan struct{})
		cfg := config(until(release))
		cfg.Policy.HandlerTimeout = -1
		bound(&cfg)
		c := k.Run(cfg)
		records := inBatches(k, 5, 100, 10*time.Second)
		var waits int
		for _, l := range c.Health().Lanes {
			waits += l.Queued + l.Running
		}
		// the first fetch may be larger than the bound; later records wait on the broker
		if waits > 250 {
			t.Errorf("%d of %d records are in memory, want what came before the fetches paused", waits, len(records))
		}
		close(release)
		handledOnce(k, records)
		k.Conserved()
	})
}

// The budget has room for some twenty records. Tiers are read to their ends nevertheless, and each
// record is fetched again.
func TestTierFeed_HoldsManyTimesItsBudget(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt < 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		quietly(&cfg)
		cfg.Policy.Tiers = []time.Duration{time.Minute, 10 * time.Minute}
		cfg.MaxParkedBytes = 5000
		c := k.Run(cfg)
		records := inBatches(k, 5, 100, 10*time.Second)
		if n := waiting(c); n != len(records) {
			t.Errorf("%d records are parked, want all %d, which are read though there is no room for them", n, len(records))
		}
		handledOnce(k, records)
		k.Conserved()
	})
}

// After a night without a consumer the whole backlog of a tier is overdue. Every record went
// straight to the queue, which had no bound for a tier, so all of it was read into memory. Now the
// tier's fetch pauses, and resumes as records finish.
func TestTierFeed_ReadsAnOverdueBacklogWithinItsBudget(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, HandlerTimeout: -1, Breaker: noBreaker, RetryBudget: noBudget}
		first := k.Run(cfg)
		records := inBatches(k, 40, 100, 100*time.Millisecond)
		committed(t, k, "orders", 0, int64(len(records)))
		stop(t, first)
		time.Sleep(10 * time.Hour)
		release := make(chan struct{})
		cfg.MaxParkedBytes = 16 << 10
		cfg.Kafka = []kgo.Opt{kgo.FetchMaxPartitionBytes(16 << 10), kgo.FetchMaxBytes(16 << 10)}
		cfg.Handler = until(release)
		second := k.Run(cfg)
		time.Sleep(time.Minute)
		l := second.Health().Lanes[0]
		if waits := l.Queued + l.Parked + l.Running; waits == 0 || waits > 500 {
			t.Errorf("%d of %d records are in memory with a budget of 16 KiB", waits, len(records))
		}
		close(release)
		handledOnce(k, records)
		k.Conserved()
	})
}
