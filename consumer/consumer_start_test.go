package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// Lanes were opened in one call, which ended at the first error. So one refused sibling kept all
// lanes of the assignment from starting.
func TestConsumerStart_StuckLaneHoldsUpNoOther(t *testing.T) {
	each(t, map[string]kfake.Fault{
		"its commit is refused":        {Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "bills.retry.300ms", Partitions: []int32{1}},
		"its bounds are not to be had": {Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "bills.retry.300ms"},
	}, 1, func(t *testing.T, k *consumertest.Kafka, refuse kfake.Fault) {
		k.CreateTopic("bills", 2)
		refuse.Count, refuse.Err = -1, kerr.TopicAuthorizationFailed
		refused := k.Cluster.Fault(refuse)
		cfg := config(fine)
		cfg.Topics = []string{"orders", "bills"}
		c := k.Begin(cfg)
		handledOnce(k, k.Produce(many(10)...))
		bills := k.Produce(&kgo.Record{Topic: "bills", Partition: 1, Value: []byte("x")})
		if refuse.Partitions != nil { // the other lane of the topic runs as well
			eventually(t, "bills/0 runs", func() bool { return c.Health().Lanes[0].State == consumer.StateRunning })
		}
		if l := c.Health().Lanes[1]; l.Topic != "bills" || l.Partition != 1 || l.State != consumer.StateStarting {
			t.Errorf("lane %s/%d is %v, want bills/1 to be starting", l.Topic, l.Partition, l.State)
		}
		refused.Remove()
		k.Handled(bills[0], 1)
		k.Conserved()
	})
}

// The bounds of a partition's log are requested when it is assigned; without a leader there is no
// answer.
func TestConsumerStart_MissingLeaderHoldsUpNoOther(t *testing.T) {
	each(t, sourceAndTier, 2, func(t *testing.T, k *consumertest.Kafka, topic string) {
		before := k.Run(config(handle))
		k.Produce(many(40)...)
		k.Conserved() // every partition has a committed offset
		stop(t, before)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: topic, Partitions: []int32{1}, Count: -1, Err: kerr.LeaderNotAvailable})
		k.Begin(config(func(context.Context, *kgo.Record) error { return nil }))
		for _, r := range k.Produce(many(40)...) {
			if r.Partition == 0 {
				k.Handled(r, 1)
			}
		}
		fault.Remove()
		k.Conserved()
	})
}

// The group had no offset on the partition, and no broker answered where its log starts. The member
// left the group and joined again, over and over: no lane of any topic ran.
func TestConsumerStart_UnknownStartHoldsUpNoOther(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 1)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Partitions: []int32{1}, Count: -1, Err: kerr.LeaderNotAvailable})
		cfg := config(fine)
		cfg.Topics = []string{"orders", "bills"}
		k.Begin(cfg)
		b := k.Produce(&kgo.Record{Topic: "bills", Value: []byte("x")})
		k.Handled(b[0], 1)
		for _, r := range k.Produce(many(40)...) {
			if r.Partition == 0 {
				k.Handled(r, 1)
			}
		}
		fault.Remove()
		k.Conserved()
	})
}

// A source grew and its siblings may not grow. Then all partitions of the source are assigned
// again.
func TestConsumerStart_MissingSiblingsHoldUpNoOther(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(fine)
		cfg.Kafka = []kgo.Opt{kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(300 * time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100 * time.Millisecond)}
		first := k.Run(cfg)
		handledOnce(k, k.Produce(many(5)...))
		stop(t, first)
		cfg.Provision.Mode = retrytopics.Off
		c := k.Run(cfg)
		growTopic(t, k, "orders", 2)
		time.Sleep(20 * time.Second)
		handledOnce(k, k.Produce(&kgo.Record{Topic: "orders", Partition: 0, Value: []byte("x")}))
		if l := c.Health().Lanes[1]; l.State != consumer.StateStarting {
			t.Errorf("the lane without siblings is %v, want starting", l.State)
		}
	})
}
