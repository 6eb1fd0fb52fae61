package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// docs/operations.md says how to skip a record that a lane halts on. An operator has only the
// health. So it names the topic in which the record is: a retry topic, if the record failed there.
func TestLane_HaltedOnATierGoesOnBehindItsOffset(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := consumer.Config{
			Group: "billing", Topics: []string{"orders"},
			Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}, OnExhausted: consumer.Stop, Jitter: -1},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "never" || consumer.DeliveryOf(ctx, r).Attempt == 1 {
					return classify.As(classify.Retryable(errBusy), "busy")
				}
				return nil
			},
		}
		halted := k.Run(cfg)
		k.Handled(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("later")})[0], 1)
		r := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("never")}, &kgo.Record{Topic: "orders", Value: []byte("later")})
		never, behind := r[0], r[1]
		k.Parked(never, 5*time.Second, "busy")
		k.Parked(behind, 5*time.Second, "busy")
		time.Sleep(10 * time.Second)
		const where = "halted on offset 1 of orders.retry.5s: busy"
		if lane := halted.Health().Lanes[0]; lane.State != consumer.StateStopped || !strings.HasPrefix(lane.Why, where) {
			t.Fatalf("the lane is %s: %q, want %q", lane.State, lane.Why, where)
		}
		stop(t, halted)

		setCommitted(t, k, "orders.retry.5s", 2)
		after := k.Run(cfg)
		k.Handled(behind, 1)
		if lane := after.Health().Lanes[0]; lane.State != consumer.StateRunning {
			t.Errorf("the lane is %s: %q", lane.State, lane.Why)
		}
	})
}

// Trap 21: the dead-letter topic is not authorized, or cannot be written to in some other way, and
// the record is lost or doubled.
func TestLane_UnwritableCopyBlocksUntilItIsWritten(t *testing.T) {
	cases.Skip(t)
	type refusal struct {
		err  *kerr.Error // of the copies to partition 1
		says string      // by health
	}
	type failure struct{ topic, value string }
	each(t, cases.Cross(map[string]refusal{
		"not authorized":                         {kerr.TopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED"},
		"no leader":                              {kerr.NotLeaderForPartition, "leader"},
		"leader not available":                   {kerr.LeaderNotAvailable, "leader"},
		"too few in-sync replicas":               {kerr.NotEnoughReplicas, "in-sync replicas"},
		"too few in-sync replicas, once written": {kerr.NotEnoughReplicasAfterAppend, "in-sync replicas"},
		"no answer in time, once written":        {kerr.RequestTimedOut, "in-sync replicas"},
		"a broken disk":                          {kerr.KafkaStorageError, "leader"},
		"a policy of the broker":                 {kerr.PolicyViolation, "POLICY_VIOLATION"},
	}, map[string]failure{
		"terminal": {"orders.dlq", "bad"}, "retried": {"orders.retry.300ms", "busy"},
	}), 2, func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[refusal, failure]) {
		topic, value := tt.B.topic, tt.B.value
		c := k.Run(config(sortOfBad))
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Partitions: []int32{1}, Count: -1, Err: tt.A.err})
		failing := k.Produce(onPartition(1, value, 5)...)
		time.Sleep(time.Minute)
		other := k.Produce(
			&kgo.Record{Topic: "orders", Key: keyOf(0), Value: []byte(value)},
			&kgo.Record{Topic: "orders", Key: keyOf(0), Value: []byte("fine")},
		)
		k.Handled(other[1], 1)
		if value == "bad" {
			k.DeadLettered(other[0], headers.ReasonTerminal)
		} else {
			k.Handled(other[0], 1)
		}
		h := c.Health()
		if l := h.Lanes[1]; h.OK || l.State != consumer.StateBlocked || !strings.Contains(l.Why, tt.A.says) {
			t.Errorf("lane 1 is %+v, want it blocked by what says %q", l, tt.A.says)
		}
		if l := h.Lanes[0]; l.State != consumer.StateRunning {
			t.Errorf("lane 0 is %+v, want it running", l)
		}
		if got := k.Cluster.GroupInfo("billing").Commits["orders"][1].Offset; got != 0 {
			t.Errorf("%d is committed over copies that are not safe", got)
		}
		fault.Remove()
		committed(t, k, "orders", 1, int64(len(failing)))
		k.Conserved()
		holds(t, k, topic, len(failing)+1)
		isOK(t, c)
	})
}

// Trap 21: the dead-letter topic is missing.
//
// kgo keeps the topic id that it saw first. It refuses a recreated topic until the client forgets
// the old one.
func TestLane_WritesToARecreatedDeadLetterTopic(t *testing.T) {
	cases.Skip(t)
	each(t, map[string][]byte{
		"records": nil, "large records": noise(10_000),
	}, 2, func(t *testing.T, k *consumertest.Kafka, value []byte) {
		makeSiblings(t, k, unlimited, 9_000)
		cfg := config(sortOfBad)
		cfg.Policy.Tiers = []time.Duration{tier1}
		c := k.Run(cfg)
		bad := "bad" + string(value)
		before := k.Produce(append(onPartition(0, bad, 1), onPartition(1, bad, 1)...)...)
		deadLettered(k, before, headers.ReasonTerminal)
		committed(t, k, "orders", 1, 1)
		for round := range 3 {
			k.DeleteTopic("orders.dlq")
			after := k.Produce(append(onPartition(0, bad, 20), onPartition(1, bad, 20)...)...)
			time.Sleep(2 * time.Minute)
			for _, l := range c.Health().Lanes {
				if l.State != consumer.StateBlocked || !strings.HasPrefix(l.Why, "orders.dlq: UNKNOWN_TOPIC") {
					t.Errorf("round %d: lane %d is %v: %s; want it blocked without its topic", round, l.Partition, l.State, l.Why)
				}
			}
			fine := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("fine")})[0]
			k.CreateTopic("orders.dlq", 2)
			k.Handled(fine, 1)
			deadLettered(k, after, headers.ReasonTerminal)
			holds(t, k, "orders.dlq", len(after))
			eventually(t, "nothing is blocked", func() bool { return len(blocked(c)) == 0 })
			if value != nil {
				limit(t, k, "orders.dlq", 9_000)
			}
		}
	})
}

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
