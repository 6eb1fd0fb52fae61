package redrive_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// Trap 29: a source is recreated or a group rewound, and the new dead letters are taken for copies
// of old ones and deleted.
func TestPlan_TakesLettersThatFailAfterASuccess(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*testing.T, *consumertest.Kafka, *switched){
		"the source is recreated": func(_ *testing.T, k *consumertest.Kafka, _ *switched) {
			k.DeleteTopic("orders")
			time.Sleep(time.Minute)
			k.CreateTopic("orders", 1)
			for range 3 {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("another")})
			}
		},
		"the group is rewound": func(t *testing.T, k *consumertest.Kafka, s *switched) {
			s.stop(t)
			setOffset(t, k, "orders", 0)
			s.run(k)
		},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			s := letters(t, k, 3, succeeding)
			r := redriver(t, k)
			time.Sleep(time.Minute)
			succeeds(t, 3)(r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Ramp: -1, Window: 2 * time.Second}, nil)))
			time.Sleep(time.Minute)
			s.set(failing("tax"))
			again(t, k, s)
			for waited := 0; k.Cluster.PartitionInfo("orders.dlq", 0).HighWatermark < 6; waited++ {
				if time.Sleep(time.Second); waited > 600 {
					t.Fatalf("the topic ends at %d", k.Cluster.PartitionInfo("orders.dlq", 0).HighWatermark)
				}
			}
			if got := states(t, k); got[""] != 3 || got[dlq.Succeeded] != 3 {
				t.Errorf("the ledger says %v, want 3 open", got)
			}
			if p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err != nil || p.Letters != 3 {
				t.Errorf("the plan is %+v, %v; want 3 letters", p, err)
			}
			if found, err := readLedger(t, k).Prunable(t.Context(), time.Time{}, nil); err != nil || found.Until[0] != 3 {
				t.Errorf("prunable %+v, %v; want the 3 that succeeded", found, err)
			}
		})
	}
}
