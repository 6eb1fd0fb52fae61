package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// The commit which says that a record has run alone fails. Before the next one, a record of another
// partition was named alone, and killed: both were dead-lettered.
func TestIsolator_RefusedCommitLeavesNoneCharged(t *testing.T) {
	each(t, orders, 3, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		for p := range int32(3) {
			for range 3 {
				k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(0, 3), Partition: p})
			}
			left(t, k, "orders", p, "n=2 s=3 g=AAM")
		}
		var first, killer atomic.Int32
		first.Store(-1)
		killer.Store(-1)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			time.Sleep(200 * time.Millisecond)
			if first.CompareAndSwap(-1, r.Partition); killer.Load() < 0 && first.Load() != r.Partition {
				killer.Store(r.Partition)
			}
			if killer.Load() < 0 {
				k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: 1, Err: kerr.UnknownServerError})
			}
			return r.Partition == killer.Load() && r.Offset == 0
		}, fine))
		cfg.Order, cfg.CommitInterval = order, 10*time.Second
		m.limited(cfg, 3, func() bool { return m.letters() > 0 && m.deaths > 0 })
		for _, r := range content(t, k, "orders.dlq") {
			if meta, _ := headers.Parse(r.Headers); meta.Original.Partition != killer.Load() {
				t.Errorf("the innocent of partition %d is dead-lettered: %s", meta.Original.Partition, meta.Reason)
			}
		}
		if m.letters() == 0 {
			t.Error("the one that kills is no dead letter")
		}
	})
}
