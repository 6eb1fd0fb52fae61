package consumer_test

import (
	"context"
	"io"
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

// The source grew while the permission to read a former group's offsets was withdrawn. An error in
// the search for starts ended the member's session, over and over: no lane ran, and health was OK.
func TestConsumerStartOffset_FormerGroupDelaysFreshOnly(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(fine)
		handled := watch(&cfg)
		cfg.FormerGroups = []string{"invoicing"}
		cfg.Kafka = []kgo.Opt{kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100 * time.Millisecond)}
		c := k.Run(cfg)
		k.Produce(many(20)...)
		k.Conserved()
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Group: "invoicing", Count: -1, Err: kerr.GroupAuthorizationFailed})
		growTopic(t, k, "orders", 3)
		time.Sleep(6 * time.Minute) // until all clients have heard of it
		joined := joins(k)
		for _, p := range []int32{0, 1} {
			k.Handled(k.Produce(&kgo.Record{Topic: "orders", Key: []byte("key-0"), Partition: p, Value: []byte("x")})[0], 1)
		}
		late := k.Produce(&kgo.Record{Topic: "orders", Partition: 2, Value: []byte("x")})[0]
		time.Sleep(2 * time.Minute)
		if n := joined.Hits(); n > 0 {
			t.Errorf("the member joined %d times in two minutes, want none: a fresh partition waits by itself", n)
		}
		waitsBecause(t, c, "orders", 2, "GROUP_AUTHORIZATION_FAILED")
		if handled(late) {
			t.Errorf("record %d was handled", late.Offset)
		}
		fault.Remove()
		k.Handled(late, 1)
		k.Conserved()
		isOK(t, c)
	})
}

// No broker answered for the bounds of the logs. A partition with a committed offset does not need
// them.
func TestConsumerStartOffset_CommittedRunsWithoutItsLog(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		before := k.Run(config(fine))
		k.Produce(many(40)...)
		k.Conserved()
		stop(t, before)
		k.Cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			return nil, io.ErrUnexpectedEOF, true // the connection dies
		})
		k.Begin(config(fine))
		handledOnce(k, k.Produce(many(40)...))
	})
}

// The permission to read a source was missing for a moment, during a rebalance. kgo drops a
// partition whose offset is refused, and does not ask again in that session.
func TestConsumerStartOffset_RefusedOffsetIsAskedAgain(t *testing.T) {
	each(t, balancers, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(fine)
		cfg.Kafka = opts
		before := k.Run(cfg)
		k.Produce(many(40)...)
		k.Conserved()
		stop(t, before)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Topic: "orders", Partitions: []int32{1}, Count: -1, Err: kerr.TopicAuthorizationFailed})
		var again ran
		cfg.Handler = func(_ context.Context, r *kgo.Record) error {
			again.count(r)
			return nil
		}
		c := k.Begin(cfg)
		var late []*kgo.Record
		for _, r := range k.Produce(many(40)...) {
			if r.Partition == 0 {
				k.Handled(r, 1)
			} else {
				late = append(late, r)
			}
		}
		time.Sleep(2 * time.Minute)
		waitsBecause(t, c, "orders", 1, "TOPIC_AUTHORIZATION_FAILED")
		fault.Remove()
		time.Sleep(time.Minute)
		handledOnce(k, late)
		k.Conserved()
		for offset := range int64(5) {
			if n := again.times(&kgo.Record{Topic: "orders", Partition: 1, Offset: offset}); n != 0 {
				t.Errorf("offset %d ran again: the lane does not begin at its committed offset", offset)
			}
		}
	})
}

// An expelled member restarts its lanes. It asked for all their offsets together in a callback of
// kgo, without end. So one topic without permissions kept every lane of the member from reading.
func TestConsumerStartOffset_ExpelledMemberAsksForEach(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 1)
		cfg := config(fine)
		cfg.Topics = []string{"orders", "bills"}
		// the member learns of it by a refused commit first
		cfg.Kafka = []kgo.Opt{kgo.HeartbeatInterval(8 * time.Second)}
		c := k.Run(cfg)
		k.Produce(many(20)...)
		k.Produce(&kgo.Record{Topic: "bills", Value: []byte("x")})
		k.Conserved()
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch, kmsg.Metadata}, Topic: "orders", Count: -1, Err: kerr.TopicAuthorizationFailed})
		expel(t, k, 0)
		k.Produce(&kgo.Record{Topic: "bills", Value: []byte("y")}) // whose commit is refused
		time.Sleep(30 * time.Second)
		k.Handled(k.Produce(&kgo.Record{Topic: "bills", Value: []byte("z")})[0], 1)
		time.Sleep(time.Minute)
		waitsBecause(t, c, "orders", 0, "may this user describe it?")
		fault.Remove()
		handledOnce(k, k.Produce(many(5)...))
		k.Conserved()
	})
}

// One member commits the starts of its first partitions sooner than another. These commits do not
// make the other's partitions look like added ones.
func TestStart_FreshGroupBeginsAtTheEndTogether(t *testing.T) {
	each(t, protocols, 12, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		old := k.Produce(many(100)...)
		// Some partitions wait for the ends of their logs, and are committed later than the others:
		// when further members begin.
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Partitions: []int32{2, 5, 8, 11}, Count: -1, Err: kerr.LeaderNotAvailable})
		cfg := config(fine)
		handled := watch(&cfg)
		cfg.Start, cfg.Kafka = consumer.StartLatest(), opts
		for range 3 {
			k.Begin(cfg)
			time.Sleep(time.Second)
		}
		fault.Remove()
		time.Sleep(time.Minute)
		handledOnce(k, k.Produce(many(100)...))
		for _, r := range old {
			if handled(r) {
				t.Errorf("record %d was handled", r.Offset)
			}
		}
	})
}
