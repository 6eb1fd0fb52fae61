package redrive_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// Trap 29: a source is recreated or a group rewound, and the new dead letters are taken for copies of old ones and deleted.
func TestLineage_WhatFailsAfterARunThatSucceededIsPlannedAgain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*testing.T, *consumertest.Kafka, *consumertest.Consumer, *switched){
		"the source is recreated": func(_ *testing.T, k *consumertest.Kafka, _ *consumertest.Consumer, _ *switched) {
			k.DeleteTopic("orders")
			time.Sleep(time.Minute)
			k.CreateTopic("orders", 1)
			for range 3 {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("another")})
			}
		},
		"the group is rewound": func(t *testing.T, k *consumertest.Kafka, c *consumertest.Consumer, s *switched) {
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			adm, err := kadm.NewOptClient(k.Opts()...)
			if err != nil {
				t.Fatal(err)
			}
			defer adm.Close()
			to := kadm.Offsets{}
			to.AddOffset("orders", 0, 0, -1)
			if err := adm.CommitAllOffsets(t.Context(), "billing", to); err != nil {
				t.Fatal(err)
			}
			k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, 30 * time.Second}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				var s switched
				c := letters(t, k, &s, 3)
				s.set(succeeding)
				r := redriver(t, k)
				time.Sleep(time.Minute)
				if o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Ramp: -1, Window: time.Second}, nil); err != nil || o.Counts.Succeeded != 3 {
					t.Fatalf("the run ended with %v, and %+v", err, o)
				}
				time.Sleep(time.Minute)
				s.set(failing("tax"))
				again(t, k, c, &s)
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
		})
	}
}
