package consumer_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
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
