package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

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
