package consumer_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Ready was closed as soon as the first topic's lanes ran, while another's were still being opened.
func TestConsumer_ReadyAwaitsTheLanesOfAllTopics(t *testing.T) {
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

// A lane that cannot start delays Ready by at most a minute, even if it is the only lane.
func TestConsumer_ReadyAwaitsNoLaneThatCannotStart(t *testing.T) {
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
