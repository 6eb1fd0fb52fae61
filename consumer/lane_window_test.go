package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Trap 34: a partition that is blocked changes its owner, and each new owner runs thousands of
// records before it holds: all that came back until the first copy was refused, or as many as the
// bound of a lane lets out where none is answered.
func TestLane_BlockedRunsAHandfulUnderEachOwner(t *testing.T) {
	const burst, handful = 300, 16
	each(t, map[string]error{
		"refused": kerr.TopicAuthorizationFailed, "not answered": kerr.NotEnoughReplicas,
	}, 2, func(t *testing.T, k *consumertest.Kafka, err error) {
		var runs [2]atomic.Int32
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if string(r.Value) == "fine" {
				return nil
			}
			runs[r.Partition].Add(1)
			return errors.New("no such SKU")
		})
		stop(t, k.Run(cfg)) // the siblings are there
		var code *kerr.Error
		errors.As(err, &code)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Err: code, Count: -1})
		for p := range runs {
			k.Produce(onPartition(p, "fine", 50)...) // which hold up no other
			k.Produce(onPartition(p, "bad", burst)...)
		}
		var c *consumertest.Consumer
		for owner := range 3 {
			for p := range runs {
				runs[p].Store(0)
			}
			c = k.Run(cfg)
			time.Sleep(time.Minute)
			for p := range runs {
				if n := runs[p].Load(); n == 0 || n > handful {
					t.Errorf("owner %d ran %d records of lane %d, which is blocked; want some, and at most %d", owner, n, p, handful)
				}
			}
			allAre(t, c, consumer.StateBlocked)
			if owner == 2 {
				break
			}
			stop(t, c)
		}
		fault.Remove()
		k.Conserved()
		began := time.Now()
		for p := range runs {
			k.Produce(onPartition(p, "bad", burst)...)
		}
		k.Conserved()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%d records took %v once copies are written again", 2*burst, took)
		}
	})
}

// If all records of a lane fail, each acknowledgement doubles the copies that may be in flight. So
// only the first copies wait for round trips to the broker.
func TestLane_AcknowledgedCopiesOpenItsWindow(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(func(context.Context, *kgo.Record) error { return errors.New("no such SKU") })
		stop(t, k.Run(cfg))
		k.Produce(onPartition(1, "bad", 1000)...)
		const trip = 10 * time.Millisecond
		var trips atomic.Int32
		k.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			trips.Add(1)
			time.Sleep(trip)
			return nil, nil, false
		})
		k.Run(cfg)
		k.Conserved()
		if n := trips.Load(); n > 20 {
			t.Errorf("1,000 copies took %d trips of %v, want some: 8 go with the first, and all that there is with one of the next ones", n, trip)
		}
	})
}
