package consumer_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Trap 6: compaction leaves gaps of any size, and a tracker that counts offsets waits for what was in them.
//
// A real broker compacts in its own time, so this is on the embedded one alone; the suite has the gaps of transactions.
func TestWhatCompactionTookHoldsBackNoOffset(t *testing.T) {
	t.Parallel()
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				if err := k.Cluster.CreateTopic("orders", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
					t.Fatal(err)
				}
				var records, kept []*kgo.Record
				for i := range 10_000 { // more than a chunk of the tracker lies between two that are kept
					r := &kgo.Record{Topic: "orders", Key: []byte("often"), Value: fmt.Append(nil, i)}
					if i == 7 || i == 9000 {
						r.Key = fmt.Append(nil, "once-", i)
						kept = append(kept, r)
					}
					records = append(records, r)
				}
				k.Produce(records...)
				kept = append(kept, k.Produce(&kgo.Record{Topic: "orders", Key: []byte("often"), Value: []byte("last")})...)
				k.Cluster.Compact()
				if size := k.Cluster.PartitionInfo("orders", 0).NumBytes; size > 1000 {
					t.Fatalf("%d bytes are left, want those of three records", size)
				}
				cfg := config(busyOnce)
				cfg.Order = order
				k.Run(cfg)
				handledOnce(k, kept)
				committed(t, k, "orders", 0, int64(len(records)+1))
			})
		})
	}
}
