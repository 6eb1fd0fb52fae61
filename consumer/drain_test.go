package consumer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Trap 32: each step of a rolling update has lanes drain for up to DrainTimeout. No poll was let through meanwhile, and the lanes
// that the member keeps ran dry: 20 s without a record, at each step.
func TestDrain_KeptLanesReadOn(t *testing.T) {
	t.Parallel()
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				const partitions, every, window = 5, 20 * time.Millisecond, 19 * time.Second
				k.CreateTopic("orders", partitions)
				release := make(chan struct{})
				var busy atomic.Int32
				var handled [partitions]atomic.Int32
				cfg := config(func(ctx context.Context, r *kgo.Record) error {
					if string(r.Value) != "slow" {
						handled[r.Partition].Add(1)
						return nil
					}
					busy.Add(1)
					select {
					case <-release:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				cfg.Kafka, cfg.Order, cfg.DrainTimeout = opts, consumer.OrderNone, 20*time.Second
				onEach := func(value string) (all []*kgo.Record) {
					for p := int32(1); p < partitions; p++ { // 0 stands for any
						all = append(all, &kgo.Record{Topic: "orders", Partition: p, Value: []byte(value)})
					}
					return all
				}
				stay := k.Run(cfg)
				k.Produce(onEach("slow")...)
				eventually(t, "a slow record runs on each partition", func() bool { return busy.Load() == partitions-1 })
				stop := make(chan struct{})
				var produced atomic.Int32 // on each
				var writer sync.WaitGroup
				writer.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(every):
							k.Produce(onEach("fast")...)
							produced.Add(1)
						}
					}
				})
				time.Sleep(time.Second)
				k.Begin(cfg)
				kept := map[int32]int32{}
				eventually(t, "some lanes drain", func() bool {
					clear(kept)
					drain := 0
					for _, l := range stay.Health().Lanes {
						if l.State == consumer.StateDraining {
							drain++
						} else if l.Partition > 0 {
							kept[l.Partition] = handled[l.Partition].Load()
						}
					}
					return drain > 0
				})
				from := produced.Load()
				time.Sleep(window)
				wrote := produced.Load() - from
				if len(kept) == 0 {
					t.Fatal("no lane is kept")
				}
				for p, before := range kept {
					if n := handled[p].Load() - before; float64(n) < 0.9*float64(wrote) {
						t.Errorf("partition %d, which the member keeps: %d records handled in %v of another lane's drain, of %d that came", p, n, window, wrote)
					}
				}
				close(stop)
				writer.Wait()
				close(release)
				k.Conserved()
			})
		})
	}
}
