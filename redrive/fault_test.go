package redrive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// However the end of a transaction is answered, or not, each letter is on its target once.
func TestARunGoesOnThroughFaultsAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]kfake.Fault{
		"a commit of which nobody knows":  {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1},
		"commits that are refused":        {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorNotAvailable, Count: 3},
		"a producer that is fenced":       {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.ProducerFenced, Count: 1},
		"copies that are refused":         {Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.NotEnoughReplicas, Count: 3},
		"an epoch that is over":           {Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.InvalidProducerEpoch, Count: 1},
		"a ledger that refuses":           {Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.NotEnoughReplicas, Count: 3},
		"offsets that can't be fetched":   {Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: 5},
		"a dead-letter topic that stalls": {Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.UnknownServerError, Count: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 3)
				s := newService("tax")
				incident(t, k, s, 300, "tax")
				s.has()
				r := redriver(t, k)
				p := plan(t, r)
				var f *kfake.FaultHandle
				began := time.Now()
				o, err := r.Run(t.Context(), p, redrive.Pace{Rate: 500, Canary: -1, Ramp: -1}, func(redrive.Event) {
					if f == nil && time.Since(began) > 100*time.Millisecond {
						f = k.Cluster.Fault(fault)
					}
				})
				if err != nil || o.State != redrive.Done || o.Counts.Sent != 300 || o.Counts.Succeeded != 300 {
					t.Errorf("the run ended with %v, and %+v", err, o)
				}
				if f == nil || f.Hits() == 0 {
					t.Error("there was no fault")
				}
				var wrong []string
				for i := range 300 {
					if n := s.ran[fmt.Sprintf("tax:%d", i)]; n != 1 {
						wrong = append(wrong, fmt.Sprintf("record %d: %d times", i, n))
					}
				}
				if len(wrong) > 0 {
					t.Errorf("%d were not processed once: %v", len(wrong), slices.Clip(wrong[:min(5, len(wrong))]))
				}
			})
		})
	}
}
