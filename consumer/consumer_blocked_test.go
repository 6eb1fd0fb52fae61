package consumer_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// While no copy was acknowledged, health was 503, and the log ended with parked records.
func TestConsumer_LogsThatLanesAreBlocked(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{5 * time.Second}
		log := logged(&cfg)
		c := k.Run(cfg)
		// kgo repeats such a write by itself, so nothing but silence shows it.
		silent := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Count: -1, Err: kerr.NotEnoughReplicas})
		records := k.Produce(append(onPartition(0, "v", 3), onPartition(1, "v", 3)...)...)
		time.Sleep(40 * time.Second)
		log.has(t, 1, "lanes are blocked")
		log.has(t, 1, `level=WARN msg="siding: lanes are blocked" group=billing lanes=2 blocked_now=2 since=`, "why=\"copies are not acknowledged", `partitions=orders/0-1`)
		log.has(t, 0, "no longer blocked")
		silent.Remove()
		handledOnce(k, records)
		time.Sleep(5 * time.Second)
		log.has(t, 1, "lanes are blocked")
		log.has(t, 1, `level=INFO msg="siding: lanes are no longer blocked" group=billing lanes=2 blocked_now=0 lasted=4`, `partitions=orders/0-1`)
		stop(t, c)
	})
}

// A lane that is revoked while it is blocked is still blocked under its next owner, perhaps.
func TestConsumer_LogsNoEndOfBlockedLanesThatAreRevoked(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{5 * time.Second}
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Count: -1, Err: kerr.NotEnoughReplicas})
		k.Produce(append(onPartition(0, "v", 3), onPartition(1, "v", 3)...)...)
		time.Sleep(40 * time.Second)
		log.has(t, 1, "lanes are blocked", "lanes=2")
		cfg.Logger = nil
		second := k.Run(cfg)
		time.Sleep(time.Minute)
		log.has(t, 1, "lanes revoked", "lanes=1 lanes_now=1")
		stop(t, c)
		stop(t, second)
		log.has(t, 0, "no longer blocked")
	})
}
