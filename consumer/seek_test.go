package consumer_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// laneOf is the health of one lane.
func laneOf(t *testing.T, c *consumertest.Consumer, topic string, partition int32) consumer.LaneHealth {
	t.Helper()
	for _, l := range c.Health().Lanes {
		if l.Topic == topic && l.Partition == partition {
			return l
		}
	}
	t.Fatalf("health knows no lane %s/%d", topic, partition)
	return consumer.LaneHealth{}
}

// waitsBecause checks that a lane waits for its start, and that health says why and is not OK once that takes long.
func waitsBecause(t *testing.T, c *consumertest.Consumer, topic string, partition int32, why string) {
	t.Helper()
	l, ok := laneOf(t, c, topic, partition), c.Health().OK
	if l.State != consumer.StateStarting || !strings.Contains(l.Why, why) || ok {
		t.Errorf("lane %s/%d is %v (%s) and health is OK: %v; want starting, since %s, and not OK", topic, partition, l.State, l.Why, ok, why)
	}
}

// joins counts the requests with which members join the group.
func joins(k *consumertest.Kafka) *kfake.FaultHandle {
	return k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Count: -1, Observe: true})
}

// The source grew while the right to read a former group's offsets was withdrawn. An error while starts were looked for ended the
// member's session, over and over: no lane ran, and health was OK.
func TestStart_AFormerGroupThatCannotBeAskedHoldsUpFreshPartitionsOnly(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(fine)
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
		k.Handled(late, 0)
		fault.Remove()
		k.Handled(late, 1)
		k.Conserved()
		if h := c.Health(); !h.OK {
			t.Errorf("health is %+v", h)
		}
	})
}

// No log could say where it starts and ends, which a partition with a committed offset needs not be told.
func TestStart_CommittedPartitionsRunWhereNoLogAnswers(t *testing.T) {
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

// The right to read a source was away for a moment, and a rebalance fell into it: kgo drops a partition whose offset it is refused, and
// asks no more in that session.
func TestStart_AnOffsetThatWasRefusedIsAskedForAgain(t *testing.T) {
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

// A member that was expelled starts its lanes anew. It asked for their offsets in a callback of kgo, all or nothing and without end:
// one topic without rights kept every lane of the member from reading.
func TestStart_AnExpelledMemberAsksForEachOffsetByItself(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 1)
		cfg := config(fine)
		cfg.Topics = []string{"orders", "bills"}
		cfg.Kafka = []kgo.Opt{kgo.HeartbeatInterval(8 * time.Second)} // a refused commit tells first
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
		waitsBecause(t, c, "orders", 0, "may this user see it?")
		fault.Remove()
		handledOnce(k, k.Produce(many(5)...))
		k.Conserved()
	})
}

// The starts of a group's first partitions are committed by one member sooner than by another. What is committed already does not make
// the others' partitions added ones.
func TestStart_MembersOfAFreshGroupBeginAtTheEndTogether(t *testing.T) {
	each(t, protocols, 12, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		old := k.Produce(many(100)...)
		// A part of them waits to learn its end, and is committed later than the others: when further members begin.
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Partitions: []int32{2, 5, 8, 11}, Count: -1, Err: kerr.LeaderNotAvailable})
		cfg := config(fine)
		cfg.Start, cfg.Kafka = consumer.StartLatest(), opts
		for range 3 {
			k.Begin(cfg)
			time.Sleep(time.Second)
		}
		fault.Remove()
		time.Sleep(time.Minute)
		handledOnce(k, k.Produce(many(100)...))
		for _, r := range old {
			k.Handled(r, 0)
		}
	})
}

// Ready was closed as soon as the first topic's lanes ran, while another's were still being opened.
func TestReady_WaitsForTheLanesOfAllTopics(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("payments", 2)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "payments", Count: 5, Err: kerr.TopicAuthorizationFailed})
		cfg := config(fine)
		cfg.Topics = []string{"orders", "payments"}
		c := k.Run(cfg)
		lanes := c.Health().Lanes
		for _, l := range lanes {
			if l.State == consumer.StateStarting {
				t.Errorf("ready while lane %s/%d is starting", l.Topic, l.Partition)
			}
		}
		if len(lanes) != 4 {
			t.Errorf("ready with %d lanes, want 4", len(lanes))
		}
	})
}

// A lane that cannot start at all keeps nobody from being ready for longer than a minute, be it the only one.
func TestReady_DoesNotWaitForALaneThatCannotStart(t *testing.T) {
	each(t, map[string]kfake.Fault{
		"its start cannot be asked for": {Keys: []kmsg.Key{kmsg.OffsetFetch}, Topic: "payments"},
		"its start cannot be committed": {Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "payments"},
		"none can start":                {Keys: []kmsg.Key{kmsg.OffsetCommit}},
	}, 2, func(t *testing.T, k *consumertest.Kafka, fault kfake.Fault) {
		k.CreateTopic("payments", 1)
		fault.Count, fault.Err = -1, kerr.TopicAuthorizationFailed
		k.Cluster.Fault(fault)
		cfg := config(fine)
		cfg.Topics = []string{"orders", "payments"}
		c := k.Begin(cfg)
		time.Sleep(30 * time.Second)
		if c.Health().Started {
			t.Error("ready after half a minute, want it to wait for a lane that may yet start")
		}
		time.Sleep(time.Minute)
		if h := c.Health(); !h.Started || h.OK {
			t.Errorf("after a minute and a half it is ready: %v, and OK: %v; want ready, and not OK", h.Started, h.OK)
		}
		waitsBecause(t, c, "payments", 0, "")
	})
}
