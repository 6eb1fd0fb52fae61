package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A source that grows while it is consumed: the new partitions' lanes wait until their siblings have grown too.
func TestASourceThatGrowsHasItsSiblingsGrownBeforeTheNewPartitionsRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		cfg := config(handle)
		cfg.Kafka = []kgo.Opt{kgo.MetadataMaxAge(5 * time.Second)}
		k.Run(cfg)
		k.Produce(many(100)...)
		cl, err := kgo.NewClient(append(k.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		admin := kadm.NewClient(cl)
		grown, err := admin.UpdatePartitions(context.Background(), 6, "orders")
		if err == nil {
			err = grown.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		records := []*kgo.Record{{Topic: "orders", Partition: 5, Value: []byte("1")}, {Topic: "orders", Partition: 5, Value: []byte("2")}}
		if err := cl.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		k.Parked(records[0], tier1, "") // offset 0 fails
		k.Handled(records[1], 1)
		k.Conserved()
		for _, sibling := range []string{"orders.retry.300ms", "orders.retry.900ms", "orders.dlq"} {
			if got := len(k.Cluster.PartitionInfos(sibling)); got != 6 {
				t.Errorf("%s has %d partitions, want 6", sibling, got)
			}
		}
	})
}

// A pause in kgo is a set of names and outlives the assignment: a lane that was full when it was given up must read again when
// it comes back.
func TestAPauseDoesNotOutliveItsLane(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		block := make(chan struct{})
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			select {
			case <-block:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		cfg.MaxInFlight, cfg.DrainTimeout = 10, 100*time.Millisecond
		first := k.Run(cfg)
		records := k.Produce(many(300)...)
		second := k.Run(cfg)
		for len(second.Health().Lanes) != 1 || len(first.Health().Lanes) != 1 {
			time.Sleep(100 * time.Millisecond)
		}
		if err := second.Stop(); err != nil {
			t.Fatal(err)
		}
		for len(first.Health().Lanes) != 2 {
			time.Sleep(100 * time.Millisecond)
		}
		close(block)
		for _, r := range records {
			k.Handled(r, 1)
		}
		k.Conserved()
	})
}
